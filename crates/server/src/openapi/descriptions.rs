//! What documents say of definitions and fields, in upstream's words.
//!
//! The text is part of the program file and read only while a document is generated: it takes no memory otherwise.

/// Sorted lines: a definition, a field (empty for the definition itself) and a text, separated by tabs.
const LINES: &str = include_str!("../schema/descriptions.txt");

/// The only definition that describes the members which every kind has.
const TYPE_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

pub(super) struct Descriptions(Vec<(&'static str, &'static str, &'static str)>);

impl Descriptions {
    pub(super) fn read() -> Self {
        let lines = LINES.lines().filter_map(|line| {
            let (definition, rest) = line.split_once('\t')?;
            let (field, text) = rest.split_once('\t')?;
            Some((definition, field, text))
        });
        Self(lines.collect())
    }

    pub(super) fn definition(&self, name: &str) -> Option<String> {
        self.find(name, "")
    }

    pub(super) fn field(&self, definition: &str, field: &str) -> Option<String> {
        let found = self.find(definition, field);
        found.or_else(|| match field {
            "apiVersion" | "kind" => self.find(TYPE_META, field),
            _ => None,
        })
    }

    fn find(&self, definition: &str, field: &str) -> Option<String> {
        let key = (definition, field);
        let found = self.0.binary_search_by(|line| (line.0, line.1).cmp(&key));
        found.ok().map(|index| self.0[index].2.replace("\\n", "\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_and_field_is_found() {
        let descriptions = Descriptions::read();
        let sorted = descriptions.0.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1));
        assert!(sorted, "the lines are sorted and name each field once");
        let spec = "io.k8s.api.apps.v1.DaemonSetSpec";
        let of = |field| descriptions.field(spec, field).unwrap_or_default();
        assert!(of("minReadySeconds").starts_with("The minimum number of seconds"));
        assert!(of("kind").starts_with("Kind is a string value"));
        assert_eq!(descriptions.field(spec, "nothing"), None);
        let spec = descriptions.definition(spec);
        assert_eq!(
            spec.as_deref(),
            Some("DaemonSetSpec is the specification of a daemon set.")
        );
    }
}
