use super::*;
#[test]
fn none() {}
