//! A model of a terminal's screen: characters with their colours, for the control sequences that our programs write. It panics
//! at others, so that no test passes on a sequence that it does not know.

/// A character and the parameters of its colours.
type Cell = (char, String);

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Screen {
    columns: usize,
    rows: Vec<Vec<Cell>>,
    /// The screen behind the alternate one, and where its cursor was.
    behind: Option<(Vec<Vec<Cell>>, usize, usize)>,
    row: usize,
    column: usize,
    colours: String,
    /// The beginning of a sequence or character that is not complete.
    rest: Vec<u8>,
    /// The cursor is shown.
    pub cursor: bool,
    wraps: bool,
}

impl Screen {
    pub fn new(columns: usize, rows: usize) -> Self {
        Self {
            columns,
            rows: vec![blank(columns); rows],
            behind: None,
            row: 0,
            column: 0,
            colours: String::new(),
            rest: Vec::new(),
            cursor: true,
            wraps: true,
        }
    }

    /// The program has the alternate screen.
    pub fn is_alternate(&self) -> bool {
        self.behind.is_some()
    }

    /// The lines, without blanks at their ends.
    pub fn text(&self) -> String {
        let lines = self.rows.iter().map(|row| {
            let line: String = row.iter().map(|(char, _)| char).collect();
            line.trim_end().to_owned()
        });
        lines.collect::<Vec<String>>().join("\n")
    }

    /// The colours of all cells with this character, each once.
    pub fn colours_of(&self, symbol: char) -> Vec<String> {
        let cells = self.rows.iter().flatten();
        let cells = cells.filter(|(char, colours)| *char == symbol && !colours.is_empty());
        let mut colours: Vec<String> = cells.map(|(_, colours)| colours.clone()).collect();
        colours.sort();
        colours.dedup();
        colours
    }

    pub(super) fn resize(&mut self, columns: usize, rows: usize) {
        self.columns = columns;
        let behind = self.behind.as_mut().map(|(rows, ..)| rows);
        for screen in [Some(&mut self.rows), behind].into_iter().flatten() {
            screen.resize(rows, blank(columns));
            for row in screen {
                row.resize(columns, (' ', String::new()));
            }
        }
        self.row = self.row.min(rows.saturating_sub(1));
        self.column = self.column.min(columns);
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let all = std::mem::take(&mut self.rest);
        let complete = match std::str::from_utf8(&all) {
            Ok(_) => all.len(),
            Err(error) => error.valid_up_to(),
        };
        let text = String::from_utf8_lossy(&all[..complete]).into_owned();
        let mut chars = text.chars();
        let mut consumed = 0;
        while let Some(char) = chars.clone().next() {
            let before = chars.as_str().len();
            chars.next();
            if char == '\x1b' {
                let Some((parameters, end)) = sequence(chars.as_str()) else {
                    break;
                };
                let length = parameters.len() + 1 + end.len_utf8();
                chars = chars.as_str()[length..].chars();
                self.control(&parameters, end);
            } else {
                self.put(char);
            }
            consumed += before - chars.as_str().len();
        }
        self.rest = all[consumed..].to_vec();
    }

    fn put(&mut self, char: char) {
        match char {
            '\r' => self.column = 0,
            '\n' => self.line_feed(),
            char => {
                if self.column >= self.columns && self.wraps {
                    self.column = 0;
                    self.line_feed();
                }
                let column = self.column.min(self.columns.saturating_sub(1));
                self.rows[self.row][column] = (char, self.colours.clone());
                self.column += 1;
            }
        }
    }

    fn line_feed(&mut self) {
        if self.row + 1 < self.rows.len() {
            self.row += 1;
        } else {
            self.rows.remove(0);
            self.rows.push(blank(self.columns));
        }
    }

    fn control(&mut self, parameters: &str, end: char) {
        let mut numbers = parameters
            .split(';')
            .map(|n| n.parse::<usize>().unwrap_or(1));
        match (end, parameters) {
            ('m', "" | "0") => self.colours.clear(),
            ('m', _) => parameters
                .trim_start_matches("0;")
                .clone_into(&mut self.colours),
            ('H', _) => {
                let (row, column) = (numbers.next().unwrap_or(1), numbers.next().unwrap_or(1));
                self.row = (row - 1).min(self.rows.len() - 1);
                self.column = column - 1;
            }
            ('K', "") => self.clear_line(),
            ('J', "") => {
                self.clear_line();
                let columns = self.columns;
                self.rows[self.row + 1..].fill(blank(columns));
            }
            ('J', "2") => self.rows.fill(blank(self.columns)),
            ('h', "?1049") => {
                let empty = vec![blank(self.columns); self.rows.len()];
                let rows = std::mem::replace(&mut self.rows, empty);
                self.behind = Some((rows, self.row, self.column));
            }
            ('l', "?1049") => {
                let behind = self.behind.take().expect("it was entered");
                (self.rows, self.row, self.column) = behind;
            }
            ('h', "?25") => self.cursor = true,
            ('l', "?25") => self.cursor = false,
            ('h', "?7") => self.wraps = true,
            ('l', "?7") => self.wraps = false,
            ('h' | 'l', "?2026") => {}
            _ => panic!("the screen does not know ESC[{parameters}{end}"),
        }
    }

    fn clear_line(&mut self) {
        let column = self.column.min(self.columns);
        self.rows[self.row][column..].fill((' ', String::new()));
    }
}

fn blank(columns: usize) -> Vec<Cell> {
    vec![(' ', String::new()); columns]
}

/// The parameters and the final character of a sequence after its escape character; `None` if it is not complete.
fn sequence(text: &str) -> Option<(String, char)> {
    let rest = text.strip_prefix('[').or_else(|| {
        assert!(text.is_empty(), "the screen knows only ESC[: {text:?}");
        None
    })?;
    let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
    let last = rest[end..].chars().next()?;
    Some((rest[..end].to_owned(), last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_may_come_in_pieces() {
        let mut screen = Screen::new(10, 3);
        for piece in [
            "\x1b[?1049h\x1b[",
            "2;3Hab\x1b[1;3",
            "8mc\x1b[0md\x1b[1;1Hx",
        ] {
            screen.write(piece.as_bytes());
        }
        assert_eq!(screen.text(), "x\n  abcd\n");
        assert_eq!(screen.colours_of('c'), ["1;38"]);
        assert!(screen.colours_of('d').is_empty() && screen.is_alternate());
        screen.write("\x1b[2;5H\x1b[K\x1b[?1049lend\r\n".as_bytes());
        assert!(screen.text().starts_with("end") && !screen.is_alternate());
    }
}
