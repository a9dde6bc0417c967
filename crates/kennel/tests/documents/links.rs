//! Documents hold together: links lead somewhere, all pages are in the index, and pages in two languages say the same.

use std::path::{Path, PathBuf};

use kennel_testkit::session::page;

/// Places that have no documents of ours.
const ASIDE: &[&str] = &[".git", ".tools", "target", "fuzz"];

fn root() -> PathBuf {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    root.canonicalize().unwrap()
}

/// All pages below a directory.
fn pages(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        let name = entry.file_name();
        if entry.file_type().unwrap().is_dir() {
            if !ASIDE.iter().any(|aside| name == *aside) {
                found.extend(pages(&path));
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The lines of a page that are no code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// Where a page's links lead: `](target)`. A link may be broken over two lines, but never within its target.
fn links(text: &str) -> Vec<String> {
    let prose: Vec<&str> = prose(text).collect();
    let prose = prose.join("\n");
    let starts = prose.match_indices("](").map(|(at, mark)| at + mark.len());
    let target = |at: usize| prose[at..].split(')').next().unwrap_or_default();
    starts.map(|at| target(at).to_owned()).collect()
}

/// What a heading is called in links, as GitHub has it.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let text: String = text.chars().filter(kept).collect();
    text.replace(' ', "-")
}

fn anchors(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).unwrap();
    let headings = prose(&text).filter(|line| line.starts_with('#'));
    headings.map(anchor).collect()
}

/// What is wrong with a link, if something is.
fn fault(page: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, place) = link.split_once('#').unwrap_or((link, ""));
    let target = match file {
        "" => page.to_owned(),
        file => page.parent()?.join(file),
    };
    if !target.exists() {
        return Some(format!("{}: {link} is not there", page.display()));
    }
    let is_page = target
        .extension()
        .is_some_and(|extension| extension == "md");
    if place.is_empty() || !is_page || anchors(&target).iter().any(|known| known == place) {
        return None;
    }
    Some(format!("{}: {link} has no such heading", page.display()))
}

#[test]
fn every_link_leads_somewhere() {
    let mut faults = Vec::new();
    let mut count = 0;
    for page in pages(&root()) {
        let text = std::fs::read_to_string(&page).unwrap();
        let links = links(&text);
        count += links.len();
        faults.extend(links.iter().filter_map(|link| fault(&page, link)));
    }
    assert!(count > 50, "only {count} links were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn links_and_headings_are_read_as_github_does() {
    let text = "See [a](b.md#c) and [d\ne](f).\n```\n[no](code)\n```\n";
    assert_eq!(links(text), ["b.md#c", "f"]);
    assert_eq!(anchor("## 8. The end, with `x`"), "8-the-end-with-x");
}

#[test]
fn the_index_names_every_page() {
    let index = std::fs::read_to_string(root().join("docs/README.md")).unwrap();
    let linked = links(&index);
    for directory in ["guides", "reference"] {
        for page in pages(&root().join("docs").join(directory)) {
            let name = page.file_name().unwrap().to_str().unwrap();
            let expected = format!("{directory}/{name}");
            assert!(
                linked.contains(&expected),
                "docs/README.md lacks {expected}"
            );
        }
    }
}

/// The rows of all tables, and what is in them that needs no translation: the number of columns, and whether the
/// answer is no.
fn rows(text: &str) -> Vec<(usize, bool)> {
    let rows = prose(text).filter(|line| line.starts_with('|'));
    let row = |line: &str| {
        let no = line.contains("**no**") || line.contains("**不支持**");
        (line.matches('|').count(), no)
    };
    rows.map(row).collect()
}

/// Commands without their comments.
fn commands(text: &str) -> Vec<String> {
    let session = page::read(text).session;
    let make = text.lines().filter(|line| line.starts_with("make "));
    let make = make.map(|line| line.split('#').next().unwrap_or_default());
    let lines = session.lines().filter(|line| !line.is_empty());
    lines.chain(make).map(str::to_owned).collect()
}

/// The suffix of pages in Chinese.
const CHINESE: &str = ".zh.md";

/// The links of a page but for the one to itself in the other language, as the pages in English have them.
fn translated_links(text: &str, own_name: &str) -> Vec<String> {
    let links = links(text).into_iter();
    let links = links.map(|link| link.replace(CHINESE, ".md"));
    links.filter(|link| link != own_name).collect()
}

fn check_translation(english: &Path) {
    let chinese = english.with_extension("zh.md");
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let (name, shown) = (english.file_name().unwrap(), chinese.display());
    let (english, chinese) = (read(english), read(&chinese));
    assert_eq!(rows(&english), rows(&chinese), "{shown}");
    assert!(rows(&english).len() > 4, "{shown}");
    assert_eq!(commands(&english), commands(&chinese), "{shown}");
    let links = |text: &str| translated_links(text, name.to_str().unwrap());
    assert_eq!(links(&english), links(&chinese), "{shown}");
    let headings = |text: &str| prose(text).filter(|line| line.starts_with('#')).count();
    assert_eq!(headings(&english), headings(&chinese), "{shown}");
}

#[test]
fn pages_in_two_languages_say_the_same() {
    let guides = pages(&root().join("docs/guides")).into_iter();
    let translated = guides.filter(|page| page.with_extension("zh.md").exists());
    let translated: Vec<PathBuf> = translated.chain([root().join("README.md")]).collect();
    assert!(translated.len() >= 3, "{translated:?}");
    for page in &translated {
        check_translation(page);
    }
}
