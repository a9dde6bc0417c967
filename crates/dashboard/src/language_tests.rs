//! The page has texts for every code that the server sends.

use std::collections::BTreeMap;

use kennel_core::picture::Reason;
use kennel_core::rollout::SENTENCES;
use serde_json::Value;

const ENGLISH: &str = include_str!("../page/en.js");
const CHINESE: &str = include_str!("../page/zh.js");
const CHINESE_SENTENCES: &str = include_str!("../page/zh_sentences.js");

/// Values that sentences have beside those of the English text.
const FURTHER: [&str; 5] = ["n", "names", "stageNumber", "stageCount", "stagePolicy"];

/// The entries of a table: one in each line.
fn table(text: &'static str) -> BTreeMap<&'static str, Value> {
    let entry = |line: &'static str| {
        let (key, value) = line.trim().strip_suffix(',')?.split_once(": ")?;
        let value = serde_json::from_str(value).ok()?;
        Some((key.trim_matches('"'), value))
    };
    text.lines().filter_map(entry).collect()
}

/// The entry for one or for several.
fn text(entry: &Value, number: Option<&str>) -> String {
    let text = match (entry, number) {
        (Value::Array(both), Some("1")) => &both[0],
        (Value::Array(both), _) => &both[1],
        (text, _) => text,
    };
    let text = text.as_str().unwrap();
    text.replace("{n}", number.unwrap_or_default())
}

fn placeholders(text: &str) -> Vec<&str> {
    let parts = text.split('{').skip(1);
    parts
        .filter_map(|part| Some(part.split_once('}')?.0))
        .collect()
}

#[test]
fn every_reason_has_a_text_in_each_language_and_the_terminal_s_in_english() {
    let [english, chinese] = [table(ENGLISH), table(CHINESE)];
    for reason in Reason::ALL {
        let code = reason.code();
        let (name, number) = match code.split_once(':') {
            Some((name, number)) => (name, Some(number)),
            None => (&*code, None),
        };
        let key = format!("reason.{name}");
        assert_eq!(text(&english[&*key], number), reason.to_string());
        assert!(!text(&chinese[&*key], number).is_empty(), "{key}");
    }
}

#[test]
fn every_sentence_is_there_in_chinese_with_values_that_it_has() {
    let chinese = table(CHINESE_SENTENCES);
    for (code, english) in SENTENCES {
        let text = chinese.get(code).and_then(Value::as_str);
        let text = text.unwrap_or_else(|| panic!("no {code}"));
        let known = [placeholders(english), FURTHER.to_vec()].concat();
        for name in placeholders(text) {
            assert!(known.contains(&name), "{code} has no {name}");
        }
    }
    assert_eq!(chinese.len(), SENTENCES.len());
}
