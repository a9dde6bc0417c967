//! What decoding and conforming do to bodies.

use serde_json::json;

use super::*;
