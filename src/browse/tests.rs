//! Tables of what keys do, and pictures of the screens.
