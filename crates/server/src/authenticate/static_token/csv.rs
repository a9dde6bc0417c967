//! Comma-separated values (RFC 4180): fields may be quoted, and quotes within them are doubled. A record
//! is one line; empty lines are skipped.

/// The number of the line, and its fields.
pub(super) type Record = (usize, Vec<String>);

/// Why a line is no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CsvError {
    #[error("text after the closing quote of a field")]
    TextAfterQuote,
    #[error("quote in an unquoted field")]
    QuoteInField,
    #[error("unclosed quote")]
    Unclosed,
}

/// Fails with the number of the invalid line and why.
pub(super) fn records(text: &str) -> Result<Vec<Record>, (usize, CsvError)> {
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            let number = index + 1;
            let fields = fields(line).map_err(|why| (number, why))?;
            Ok((number, fields))
        })
        .collect()
}

fn fields(line: &str) -> Result<Vec<String>, CsvError> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let (field, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_field(quoted)?,
            None => unquoted_field(rest)?,
        };
        fields.push(field);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(fields),
            None => return Err(CsvError::TextAfterQuote),
        }
    }
}

fn unquoted_field(text: &str) -> Result<(String, &str), CsvError> {
    let end = text.find(',').unwrap_or(text.len());
    let (field, after) = text.split_at(end);
    if field.contains('"') {
        return Err(CsvError::QuoteInField);
    }
    Ok((field.to_owned(), after))
}

/// The field after its opening quote, and what follows the closing one.
fn quoted_field(text: &str) -> Result<(String, &str), CsvError> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let end = rest.find('"').ok_or(CsvError::Unclosed)?;
        field.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(more) => {
                field.push('"');
                rest = more;
            }
            None => return Ok((field, rest)),
        }
    }
}
