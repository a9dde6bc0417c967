//! Sessions in pages for people: the blocks of a Markdown page that are commands, and where they are run.

/// The test environment that a page declares.
#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    /// The environment that it declares, `<!-- tested: ENVIRONMENT -->`, if it does.
    pub environment: Option<String>,
    /// Its blocks of the kind `console` and its files, as one session; all other lines are empty, so that
    /// places are the page's.
    pub session: String,
    /// How many blocks there are.
    pub blocks: usize,
}

/// Where a reader of lines is.
enum Place {
    Prose,
    /// In a block that is no session.
    Aside,
    /// In commands, indented by so much.
    Console(usize),
    /// In a file, indented by so much.
    File(usize),
}

/// The word that ends a file. No file has it on a line of its own.
const END: &str = "THEENDOFTHEFILE";

/// Reads a page. A block with two words, such as `yaml web.yaml`, is a file that the commands after it find.
pub fn read(text: &str) -> Page {
    let mut page = Page {
        environment: None,
        session: String::new(),
        blocks: 0,
    };
    let mut place = Place::Prose;
    for line in text.lines() {
        let content = line.trim_start();
        let fence = content.strip_prefix("```");
        let shown;
        (place, shown) = match (place, fence) {
            (Place::Prose, Some(about)) => {
                let indentation = line.len() - content.len();
                let (place, shown) = open(about, indentation);
                page.blocks += usize::from(!matches!(place, Place::Aside));
                (place, shown)
            }
            (Place::Prose, None) => {
                page.environment = page.environment.or_else(|| environment(line));
                (Place::Prose, String::new())
            }
            (Place::File(_), Some(_)) => (Place::Prose, END.to_owned()),
            (_, Some(_)) => (Place::Prose, String::new()),
            (Place::Aside, None) => (Place::Aside, String::new()),
            (Place::Console(depth), None) => (Place::Console(depth), outdent(line, depth)),
            (Place::File(depth), None) => (Place::File(depth), outdent(line, depth)),
        };
        page.session.push_str(&shown);
        page.session.push('\n');
    }
    page
}

/// What a block is, by the words behind its fence, and the line that takes the fence's place.
fn open(about: &str, indentation: usize) -> (Place, String) {
    let words: Vec<&str> = about.split_whitespace().collect();
    match words[..] {
        ["console"] => (Place::Console(indentation), String::new()),
        [_, name] => (
            Place::File(indentation),
            format!("$ cat > {name} <<'{END}'"),
        ),
        _ => (Place::Aside, String::new()),
    }
}

fn environment(line: &str) -> Option<String> {
    let declared = line.strip_prefix("<!-- tested:")?.strip_suffix("-->")?;
    Some(declared.trim().to_owned())
}

fn outdent(line: &str, depth: usize) -> String {
    let blanks = line.len() - line.trim_start().len();
    line[blanks.min(depth)..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_files_stay_on_their_lines() {
        let text = "# Title\n<!-- tested: kennel up -->\n\n```yaml web.yaml\na:\n  b\n```\n\n1. Do\n\n   \
                    ```console\n   $ cat web.yaml\n   a:\n     b\n   ```\n\n```sh\nrm -rf\n```\n";
        let page = read(text);
        assert_eq!(page.environment.as_deref(), Some("kennel up"));
        assert_eq!(page.blocks, 2);
        let lines: Vec<&str> = page.session.lines().collect();
        assert_eq!(lines[3], "$ cat > web.yaml <<'THEENDOFTHEFILE'");
        assert_eq!(lines[6], END);
        assert_eq!(lines[11..14], ["$ cat web.yaml", "a:", "  b"]);
        assert!(lines[14..].iter().all(|line| line.is_empty()));
    }

    #[test]
    fn a_page_without_commands_has_none() {
        let page = read("# Title\n\n```sh\nmake\n```\n");
        assert_eq!((page.environment, page.blocks), (None, 0));
    }
}
