//! `xtask package`: builds a Debian package or an OCI image of an existing binary. `make deb` and `make image` build
//! the binary first.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use kennel_packages::{deb, image};

const USAGE: &str = "usage: cargo xtask package (deb | image) [--option VALUE …]
  --binary FILE       the kennel binary [target/release/kennel]
  --out DIR           the output directory [target/packages]
  --compression TYPE  deb: xz, zstd, gzip or none [xz]; image: gzip or none [gzip]
  --version VERSION   deb: the package version [that of kennel, with -1]
  --name NAME         image: name and tag [localhost/kennel with its version]";

struct Options {
    binary: PathBuf,
    out: PathBuf,
    compression: Option<String>,
    version: String,
    name: String,
}

/// Builds the package or image, and prints its path.
#[expect(clippy::print_stdout, reason = "the output of the task")]
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (kind, options) = arguments.split_first().context(USAGE)?;
    let options = parse(options)?;
    std::fs::create_dir_all(&options.out)?;
    match kind.as_str() {
        "deb" => {
            let deb_options = deb::Options {
                binary: &options.binary,
                version: &options.version,
                compression: options.compression.as_deref().unwrap_or("xz"),
            };
            println!("{}", deb::build(&deb_options, &options.out)?.display());
        }
        "image" => {
            let image_options = image::Options {
                binary: &options.binary,
                name: &options.name,
                compressed: options.compression.as_deref() != Some("none"),
            };
            let file = options.out.join("kennel-image.tar");
            let digest = image::build(&image_options, &file)?;
            println!("{}\n{} {digest}", file.display(), options.name);
        }
        _ => bail!("{USAGE}"),
    }
    Ok(())
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options {
        binary: "target/release/kennel".into(),
        out: "target/packages".into(),
        compression: None,
        version: deb::default_version(),
        name: image::default_name(),
    };
    for pair in arguments.chunks(2) {
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
