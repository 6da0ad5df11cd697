//! The style sheet of a picture.

use crate::graph::EdgeKind;
use crate::graph::style::{Colours, Look};

/// Light colours, and dark ones where the reader prefers them.
pub(super) fn sheet() -> String {
    let mut sheet = String::from(
        "text{text-anchor:middle;font:11px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif}\
         .name,.label{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}\
         .name{font-size:13px;font-weight:600}\
         .key{text-anchor:start}\
         .node rect{stroke-width:1.5}\
         .node.alarm rect{stroke-width:3}\
         .bars{fill:none;stroke-width:1.5;opacity:.55}\
         .line{fill:none;stroke-width:1.6}\
         .head{stroke:none}",
    );
    for look in Look::ALL.into_iter().filter(|look| look.is_dashed()) {
        sheet.push_str(&format!(".{} rect{{stroke-dasharray:5 4}}", look.class()));
    }
    for kind in EdgeKind::ALL {
        if let Some(dashes) = kind.dashes() {
            sheet.push_str(&format!(
                ".{} .line{{stroke-dasharray:{dashes}}}",
                kind.word()
            ));
        }
    }
    sheet.push_str(&colours("#ffffff", "#22282e", Look::light, EdgeKind::light));
    sheet.push_str(&format!(
        "@media (prefers-color-scheme:dark){{{}}}",
        colours("#0d1117", "#e2e6ea", Look::dark, EdgeKind::dark)
    ));
    sheet
}

fn colours(
    ground: &str,
    text: &str,
    node: impl Fn(Look) -> Colours,
    edge: impl Fn(EdgeKind) -> &'static str,
) -> String {
    let mut rules = format!(".ground{{fill:{ground}}}text{{fill:{text}}}");
    for look in Look::ALL {
        let class = look.class();
        let Colours { fill, stroke, text } = node(look);
        rules.push_str(&format!(
            ".{class} rect{{fill:{fill};stroke:{stroke}}}.{class} .bars{{stroke:{stroke}}}\
             .{class} text{{fill:{text}}}"
        ));
    }
    for kind in EdgeKind::ALL {
        let class = kind.word();
        let colour = edge(kind);
        rules.push_str(&format!(
            ".{class} .line{{stroke:{colour}}}.{class} .head,.{class} .label{{fill:{colour}}}"
        ));
    }
    rules
}
