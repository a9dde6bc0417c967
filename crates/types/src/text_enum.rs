//! Enums that the API spells as strings.

/// Declares an enum whose variants have a text each, with `as_str`, `From<&str>` and `Display`.
///
/// `pub enum Name, else Variant { … }` has a closed set: other texts become `Variant`, and the empty text becomes the
/// default. `pub enum Name, else Other(T) { … }` adds a variant `Other` that keeps other texts.
macro_rules! text_enum {
    ($(#[$meta:meta])* pub enum $name:ident, else $other:ident {
        $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $name {
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)+
                    _ if text.is_empty() => Self::default(),
                    _ => Self::$other,
                }
            }
        }

        $crate::text_enum::text_enum!(@display $name);
    };
    ($(#[$meta:meta])* pub enum $name:ident$(<$lifetime:lifetime>)?, else Other($other:ty) {
        $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+
    }) => {
        $(#[$meta])*
        pub enum $name$(<$lifetime>)? {
            $($(#[$variant_meta])* $variant,)+
            Other($other),
        }

        impl$(<$lifetime>)? $name$(<$lifetime>)? {
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Other(text) => text,
                }
            }
        }

        impl$(<$lifetime>)? From<&$($lifetime)? str> for $name$(<$lifetime>)? {
            fn from(text: &$($lifetime)? str) -> Self {
                match text {
                    $($text => Self::$variant,)+
                    other => Self::Other(other.into()),
                }
            }
        }

        /// The empty text.
        impl$(<$lifetime>)? Default for $name$(<$lifetime>)? {
            fn default() -> Self {
                Self::Other("".into())
            }
        }

        $crate::text_enum::text_enum!(@display $name$(<$lifetime>)?);
    };
    (@display $name:ident$(<$lifetime:lifetime>)?) => {
        impl$(<$lifetime>)? std::fmt::Display for $name$(<$lifetime>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use text_enum;
