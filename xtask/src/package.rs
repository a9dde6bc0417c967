//! `package`: a Debian package, or an OCI image, of a program that is built already. `make deb` and `make image`
//! build it first.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use kennel_packages::{deb, image};

const USAGE: &str = "usage: cargo xtask package (deb | image) [--option VALUE …]
  --binary FILE       the kennel to package [target/release/kennel]
  --out DIR           where to put it [target/packages]
  --compression TYPE  deb: xz, zstd, gzip or none [xz]; image: gzip or none [gzip]
  --version VERSION   deb: the version of the package [that of kennel, and -1]
  --name NAME         image: what it is called, tag included [localhost/kennel and its version]";

struct Options {
    binary: PathBuf,
    out: PathBuf,
    compression: Option<String>,
    version: String,
    name: String,
}

/// Makes what was asked for, and says where it is.
#[expect(clippy::print_stdout, reason = "where it is, is what was asked for")]
pub(crate) fn run(words: &[String]) -> Result<()> {
    let (kind, options) = words.split_first().context(USAGE)?;
    let options = parse(options)?;
    std::fs::create_dir_all(&options.out)?;
    match kind.as_str() {
        "deb" => {
            let plan = deb::Plan {
                binary: &options.binary,
                version: &options.version,
                compression: options.compression.as_deref().unwrap_or("xz"),
            };
            println!("{}", deb::build(&plan, &options.out)?.display());
        }
        "image" => {
            let plan = image::Plan {
                binary: &options.binary,
                name: &options.name,
                compressed: options.compression.as_deref() != Some("none"),
            };
            let file = options.out.join("kennel-image.tar");
            let digest = image::build(&plan, &file)?;
            println!("{}\n{} {digest}", file.display(), options.name);
        }
        _ => bail!("{USAGE}"),
    }
    Ok(())
}

fn parse(words: &[String]) -> Result<Options> {
    let mut options = Options {
        binary: "target/release/kennel".into(),
        out: "target/packages".into(),
        compression: None,
        version: deb::version(),
        name: image::name(),
    };
    for pair in words.chunks(2) {
        let [option, value] = pair else {
            bail!("{USAGE}");
        };
        match option.as_str() {
            "--binary" => options.binary = value.into(),
            "--out" => options.out = value.into(),
            "--compression" => options.compression = Some(value.clone()),
            "--version" => options.version.clone_from(value),
            "--name" => options.name.clone_from(value),
            _ => bail!("{USAGE}"),
        }
    }
    Ok(options)
}
