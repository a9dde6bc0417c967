//! What a program needs of the machine that it runs on: libraries, and how new they must be.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::run::run;

/// The libraries of a program and what loads them, where they are on this machine; none if it is static.
pub fn libraries(program: &Path) -> Vec<PathBuf> {
    let said = run(Command::new("ldd").arg(program)).unwrap_or_default();
    let path = |line: &str| {
        let after = line.rsplit("=>").next()?.trim();
        let path = after.split_whitespace().next()?;
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    said.lines().filter_map(path).collect()
}

/// A version, as numbers: `2.34`.
type Numbers = Vec<u32>;

/// The Debian packages of a program's libraries, as `Depends` has them: `libc6 (>= 2.34)`.
pub(crate) fn packages(program: &Path) -> Result<Vec<String>> {
    let told = run(Command::new("readelf").args(["-VW"]).arg(program))?;
    let needed = versions(&told);
    let mut packages: BTreeMap<String, Numbers> = BTreeMap::new();
    for library in libraries(program) {
        let name = library.file_name().unwrap_or_default().to_string_lossy();
        let newest = needed.get(name.as_ref()).cloned().unwrap_or_default();
        let package = packages.entry(owner(&library)?).or_default();
        *package = newest.max(std::mem::take(package));
    }
    Ok(packages.into_iter().map(dependency).collect())
}

fn dependency((package, version): (String, Numbers)) -> String {
    if version.is_empty() {
        return package;
    }
    let version: Vec<String> = version.iter().map(ToString::to_string).collect();
    format!("{package} (>= {})", version.join("."))
}

/// The newest version of each library that a program's symbols ask for: `libc.so.6` to `2.34`. Those it can do
/// without do not count.
fn versions(readelf: &str) -> BTreeMap<String, Numbers> {
    let mut newest: BTreeMap<String, Numbers> = BTreeMap::new();
    let mut library = String::new();
    for line in readelf.lines() {
        let after = |word: &str| {
            let (_, rest) = line.split_once(word)?;
            rest.split_whitespace().next()
        };
        if let Some(file) = after("File: ") {
            file.clone_into(&mut library);
        } else if let Some(name) = after("Name: ").filter(|_| line.contains("Flags: none"))
            && let Some(version) = numbers(name)
            && !library.is_empty()
        {
            let known = newest.entry(library.clone()).or_default();
            *known = version.max(std::mem::take(known));
        }
    }
    newest
}

/// `GLIBC_2.34` is 2, 34.
fn numbers(name: &str) -> Option<Numbers> {
    let (_, version) = name.rsplit_once('_')?;
    version
        .split('.')
        .map(|number| number.parse().ok())
        .collect()
}

/// The package that a file of this machine came with. Since /lib became /usr/lib, packages know it under
/// either name.
fn owner(file: &Path) -> Result<String> {
    let below_usr = Path::new("/usr").join(file.strip_prefix("/").unwrap_or(file));
    let real = file.canonicalize().unwrap_or_default();
    let found = [file, &below_usr, &real]
        .into_iter()
        .find_map(|path| run(Command::new("dpkg-query").arg("-S").arg(path)).ok());
    let found = found.with_context(|| format!("no package has {}", file.display()))?;
    let package = found.split([':', ',']).next().unwrap_or_default();
    Ok(package.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_that_is_needed_counts() {
        let told = "\
Version definition section '.gnu.version_d' contains 1 entry:
  000000: Rev: 1  Flags: none  Index: 2  Cnt: 1  Name: GLIBC_9.9
Version needs section '.gnu.version_r' contains 2 entries:
  000000: Version: 1  File: libgcc_s.so.1  Cnt: 2
  0x0010:   Name: GCC_3.0  Flags: none  Version: 5
  0x0020:   Name: GCC_4.2.0  Flags: none  Version: 4
  0x0030: Version: 1  File: libc.so.6  Cnt: 4
  0x0040:   Name: GLIBC_2.9  Flags: none  Version: 12
  0x0050:   Name: GLIBC_2.34  Flags: none  Version: 11
  0x0060:   Name: GLIBC_2.38  Flags: WEAK  Version: 10
  0x0070:   Name: GLIBC_PRIVATE  Flags: none  Version: 9
";
        let found = versions(told);
        let expected = BTreeMap::from([
            ("libc.so.6".to_owned(), vec![2, 34]),
            ("libgcc_s.so.1".to_owned(), vec![4, 2, 0]),
        ]);
        assert_eq!(found, expected);
    }

    #[test]
    fn a_program_of_this_machine_needs_its_libc() {
        let needs = packages(Path::new("/usr/bin/env")).unwrap();
        let libc = needs.iter().any(|need| need.starts_with("libc6 (>= 2."));
        assert!(libc, "{needs:?}");
    }
}
