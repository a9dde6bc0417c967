//! Messages about images.

use super::{Int64Value, UInt64Value};

messages! {
    ImageSpec {
        1 => image: String as string,
        18 => user_specified_image: String as string,
    }

    ListImagesRequest {}

    ListImagesResponse {
        1 => images: Vec<Image> as message repeated,
    }

    Image {
        1 => id: String as string,
        2 => repo_tags: Vec<String> as string repeated,
        3 => repo_digests: Vec<String> as string repeated,
        4 => size: u64 as uint64,
        5 => uid: Option<Int64Value> as message optional,
        6 => username: String as string,
        8 => pinned: bool as bool,
    }

    ImageStatusRequest {
        1 => image: Option<ImageSpec> as message optional,
    }

    ImageStatusResponse {
        1 => image: Option<Image> as message optional,
    }

    AuthConfig {
        1 => username: String as string,
        2 => password: String as string,
        4 => server_address: String as string,
        5 => identity_token: String as string,
    }

    PullImageRequest {
        1 => image: Option<ImageSpec> as message optional,
        2 => auth: Option<AuthConfig> as message optional,
    }

    PullImageResponse {
        1 => image_ref: String as string,
    }

    RemoveImageRequest {
        1 => image: Option<ImageSpec> as message optional,
    }

    ImageFsInfoRequest {}

    ImageFsInfoResponse {
        1 => image_filesystems: Vec<FilesystemUsage> as message repeated,
    }

    FilesystemUsage {
        2 => fs_id: Option<FilesystemIdentifier> as message optional,
        3 => used_bytes: Option<UInt64Value> as message optional,
    }

    FilesystemIdentifier {
        1 => mountpoint: String as string,
    }
}
