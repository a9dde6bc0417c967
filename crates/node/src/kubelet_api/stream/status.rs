//! How a command ended, and the size of its terminal, as version 4 of the streams' protocol writes them.

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::runtime::{Error, Result, Size};

/// The longest status we read.
const STATUS_BYTES_MAX: u64 = 64 * 1024;

/// What comes before the reason why a command could not be run.
const FAILED: &str = "error executing command in container: ";

/// Reads how a command ended: what it returned.
pub(super) async fn read(from: impl AsyncRead + Unpin) -> Result<i32> {
    let mut bytes = Vec::new();
    let read = from.take(STATUS_BYTES_MAX).read_to_end(&mut bytes).await;
    if bytes.is_empty() {
        let why = match read {
            Ok(_) => "the connection ended before the command did".to_owned(),
            Err(error) => format!("the connection broke before the command ended: {error}"),
        };
        return Err(Error::Unavailable(why));
    }
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Result<i32> {
    let Ok(status) = serde_json::from_slice::<Value>(bytes) else {
        return Err(Error::Failed(String::from_utf8_lossy(bytes).into_owned()));
    };
    if status["status"] == "Success" {
        return Ok(0);
    }
    let causes = status["details"]["causes"].as_array().into_iter().flatten();
    let mut codes = causes.filter(|cause| cause["reason"] == "ExitCode");
    let code = codes.find_map(|cause| cause["message"].as_str()?.parse().ok());
    let message = status["message"].as_str().unwrap_or("the command failed");
    // What we would say ourselves is not said twice.
    let message = message
        .strip_prefix("Internal error occurred: ")
        .unwrap_or(message);
    let message = message.strip_prefix(FAILED).unwrap_or(message);
    code.ok_or_else(|| Error::Failed(message.to_owned()))
}

/// Writes how a command ended.
pub(super) fn write(ended: &Result<i32>) -> Vec<u8> {
    let status = match ended {
        Ok(0) => json!({"metadata": {}, "status": "Success"}),
        Ok(code) => json!({
            "metadata": {},
            "status": "Failure",
            "message": format!("command terminated with non-zero exit code: exit status {code}"),
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        }),
        Err(error) => {
            let why = format!("{FAILED}{error}");
            json!({
                "metadata": {},
                "status": "Failure",
                "message": format!("Internal error occurred: {why}"),
                "reason": "InternalError",
                "details": {"causes": [{"message": why}]},
                "code": 500,
            })
        }
    };
    status.to_string().into_bytes()
}

/// Writes the size of a terminal.
pub(super) fn size(size: Size) -> Vec<u8> {
    let mut line = json!({"Width": size.width, "Height": size.height}).to_string();
    line.push('\n');
    line.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_returned_survives_the_way() {
        for code in [0, 1, 137, 255] {
            assert_eq!(parse(&write(&Ok(code))), Ok(code));
        }
        let failed = parse(&write(&Err(Error::Failed("no such file".to_owned()))));
        assert_eq!(failed, Err(Error::Failed("no such file".to_owned())));
    }

    #[test]
    fn words_of_older_servers_are_errors() {
        assert_eq!(parse(b"boom"), Err(Error::Failed("boom".to_owned())));
    }

    #[tokio::test]
    async fn a_connection_that_ends_first_is_no_success() {
        assert!(matches!(read(&b""[..]).await, Err(Error::Unavailable(_))));
    }
}
