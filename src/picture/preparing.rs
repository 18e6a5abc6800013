//! Decodes what somebody sent, and writes it anew: upright, small enough, and without metadata.
//!
//! Before anything is decoded the kind is read from the bytes, and the size from the header: a
//! small file may claim to be as large as a wall.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::imageops::FilterType;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits};
use sha2::{Digest, Sha256};

use super::{Kind, LARGEST, Original, Picture, named};

/// Most pixels of an edge as it comes.
const LONGEST_EDGE: u32 = 20_000;
/// Most bytes of the decoded pixels.
const MOST_DECODED: u64 = 128 * 1024 * 1024;
/// Most bytes that a decoder may ask for besides.
const MOST_WORKSPACE: u64 = 192 * 1024 * 1024;
/// Longest edge of what models get: more is made smaller by every provider.
const SHOWN_EDGE: u32 = 1_568;
/// Most bytes of what models get.
const MOST_BYTES: usize = 1_000_000;
/// Quality of JPEG, in percent, and the one for what is too large otherwise.
const QUALITY: u8 = 88;
const LESSER_QUALITY: u8 = 70;

/// Why a picture is not shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("it is larger than {} MB", LARGEST / 1024 / 1024)]
    TooManyBytes,
    #[error("it is no PNG, JPEG, GIF or WebP")]
    OtherKind,
    #[error("it has more pixels than are read")]
    TooManyPixels,
    #[error("it is damaged: {0}")]
    Damaged(String),
}

/// Makes a picture of bytes that somebody sent under a name.
pub fn prepared(bytes: &[u8], name: &str) -> Result<Picture, Unusable> {
    if bytes.len() > LARGEST {
        return Err(Unusable::TooManyBytes);
    }
    let kind = kind_of(bytes).ok_or(Unusable::OtherKind)?;
    let seen = upright(bytes, kind)?;
    let seen = if seen.width().max(seen.height()) > SHOWN_EDGE {
        seen.resize(SHOWN_EDGE, SHOWN_EDGE, FilterType::Triangle)
    } else {
        seen
    };
    let (written, bytes_written) = written(&seen, kind)?;
    Ok(Picture {
        name: named(name),
        kind: written,
        width: seen.width(),
        height: seen.height(),
        original: Original {
            digest: format!("{:x}", Sha256::digest(bytes)),
            bytes: bytes.len() as u64,
            kind,
        },
        bytes: bytes_written.into(),
    })
}

/// Returns the kind that the first bytes tell.
fn kind_of(bytes: &[u8]) -> Option<Kind> {
    match image::guess_format(bytes).ok()? {
        ImageFormat::Png => Some(Kind::Png),
        ImageFormat::Jpeg => Some(Kind::Jpeg),
        ImageFormat::Gif => Some(Kind::Gif),
        ImageFormat::WebP => Some(Kind::Webp),
        _ => None,
    }
}

const fn format_of(kind: Kind) -> ImageFormat {
    match kind {
        Kind::Png => ImageFormat::Png,
        Kind::Jpeg => ImageFormat::Jpeg,
        Kind::Gif => ImageFormat::Gif,
        Kind::Webp => ImageFormat::WebP,
    }
}

/// Decodes the picture, of a film the first, and turns it as its metadata says: without that a
/// photograph lies on its side.
fn upright(bytes: &[u8], kind: Kind) -> Result<DynamicImage, Unusable> {
    let mut limits = Limits::default();
    limits.max_image_width = Some(LONGEST_EDGE);
    limits.max_image_height = Some(LONGEST_EDGE);
    limits.max_alloc = Some(MOST_WORKSPACE);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format_of(kind));
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(unusable)?;
    if decoder.total_bytes() > MOST_DECODED {
        return Err(Unusable::TooManyPixels);
    }
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut seen = DynamicImage::from_decoder(decoder).map_err(unusable)?;
    seen.apply_orientation(orientation);
    Ok(seen)
}

/// Writes pixels: photographs as JPEG, all else as PNG, in which small letters stay readable.
fn written(seen: &DynamicImage, kind: Kind) -> Result<(Kind, Vec<u8>), Unusable> {
    if kind != Kind::Jpeg {
        let mut bytes = Vec::new();
        let encoder = PngEncoder::new(&mut bytes);
        DynamicImage::ImageRgba8(seen.to_rgba8())
            .write_with_encoder(encoder)
            .map_err(unusable)?;
        if bytes.len() <= MOST_BYTES {
            return Ok((Kind::Png, bytes));
        }
    }
    let opaque = DynamicImage::ImageRgb8(seen.to_rgb8());
    for quality in [QUALITY, LESSER_QUALITY] {
        let mut bytes = Vec::new();
        opaque
            .write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, quality))
            .map_err(unusable)?;
        if bytes.len() <= MOST_BYTES {
            return Ok((Kind::Jpeg, bytes));
        }
    }
    Err(Unusable::TooManyPixels)
}

fn unusable(error: ImageError) -> Unusable {
    match error {
        ImageError::Limits(_) => Unusable::TooManyPixels,
        other => Unusable::Damaged(other.to_string().chars().take(200).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{Rgb, RgbImage};
    use proptest::prelude::*;

    /// Two pixels, red to the left of blue, in large.
    fn pixels() -> RgbImage {
        RgbImage::from_fn(64, 32, |x, _| if x < 32 { Rgb([250, 0, 0]) } else { Rgb([0, 0, 250]) })
    }

    fn encoded(format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        DynamicImage::ImageRgb8(pixels()).write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    /// EXIF with an orientation and a maker's name.
    fn exif(orientation: u8) -> Vec<u8> {
        let mut exif = b"II*\0\x08\0\0\0\x02\0".to_vec();
        exif.extend_from_slice(b"\x0f\x01\x02\0\x08\0\0\0\x26\0\0\0");
        exif.extend_from_slice(&[0x12, 0x01, 0x03, 0, 1, 0, 0, 0, orientation, 0, 0, 0]);
        exif.extend_from_slice(&[0; 4]);
        exif.extend_from_slice(b"SECRETS\0");
        exif
    }

    fn photograph(orientation: u8) -> Vec<u8> {
        let mut segment = b"Exif\0\0".to_vec();
        segment.extend(exif(orientation));
        let length = u16::try_from(segment.len() + 2).unwrap();
        let bytes = encoded(ImageFormat::Jpeg);
        let length = length.to_be_bytes();
        // Behind the two bytes that begin a JPEG.
        [&bytes[..2], &[0xff, 0xe1], &length[..], &segment, &bytes[2..]].concat()
    }

    fn colour(picture: &Picture, x: u32, y: u32) -> &'static str {
        let seen = image::load_from_memory(picture.bytes()).unwrap().to_rgb8();
        if seen.get_pixel(x, y).0[0] > 128 { "red" } else { "blue" }
    }

    #[test]
    fn every_kind_is_known_by_its_bytes_and_written_anew() {
        for (format, kind, written) in [
            (ImageFormat::Png, Kind::Png, Kind::Png),
            (ImageFormat::Jpeg, Kind::Jpeg, Kind::Jpeg),
            (ImageFormat::Gif, Kind::Gif, Kind::Png),
            (ImageFormat::WebP, Kind::Webp, Kind::Png),
        ] {
            let bytes = encoded(format);
            let picture = prepared(&bytes, "a.txt").unwrap();
            assert_eq!((picture.original.kind, picture.kind), (kind, written));
            assert_eq!((picture.width, picture.height), (64, 32));
            assert_eq!(picture.original.bytes, bytes.len() as u64);
            assert_eq!((colour(&picture, 4, 4), colour(&picture, 60, 4)), ("red", "blue"));
        }
        for other in [
            &b"<svg xmlns='http://www.w3.org/2000/svg'/>"[..],
            b"",
            b"BM1234567890",
            b"%PDF-1.7",
        ] {
            assert_eq!(prepared(other, "photo.png"), Err(Unusable::OtherKind));
        }
    }

    #[test]
    fn a_photograph_stands_upright_and_tells_nothing_of_its_making() {
        let bytes = photograph(6);
        assert!(
            bytes.windows(7).any(|part| part == b"SECRETS"),
            "the test's own picture"
        );
        let picture = prepared(&bytes, "me.jpg").unwrap();
        assert_eq!((picture.width, picture.height), (32, 64));
        assert_eq!((colour(&picture, 4, 4), colour(&picture, 4, 60)), ("red", "blue"));
        for word in [&b"SECRETS"[..], b"Exif"] {
            assert!(!picture.bytes().windows(word.len()).any(|part| part == word));
        }
    }

    #[test]
    fn texts_in_chunks_and_behind_the_end_are_left_out() {
        let chunk = b"tEXtComment\0HIDDEN words";
        let length = u32::try_from(chunk.len() - 4).unwrap().to_be_bytes();
        let sum = crc(chunk).to_be_bytes();
        let bytes = encoded(ImageFormat::Png);
        // Behind the signature and the header.
        let (header, rest) = bytes.split_at(33);
        let bytes = [header, &length, chunk, &sum, rest, b"HIDDEN behind the end"].concat();
        let picture = prepared(&bytes, "x.png").unwrap();
        assert!(!picture.bytes().windows(6).any(|part| part == b"HIDDEN"));
    }

    #[test]
    fn what_is_too_large_is_made_smaller_or_refused_before_it_is_decoded() {
        let large = DynamicImage::ImageRgb8(RgbImage::new(4_000, 500));
        let mut bytes = Cursor::new(Vec::new());
        large.write_to(&mut bytes, ImageFormat::Png).unwrap();
        let picture = prepared(&bytes.into_inner(), "wide.png").unwrap();
        assert_eq!((picture.width, picture.height), (1_568, 196));
        assert_eq!(prepared(&vec![0; LARGEST + 1], "x"), Err(Unusable::TooManyBytes));

        // A header that claims more pixels than there is memory for.
        let mut bytes = encoded(ImageFormat::Png);
        bytes[16..24].copy_from_slice(&[0, 0, 0x4e, 0x20, 0, 0, 0x4e, 0x20]);
        let check = crc(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&check.to_be_bytes());
        assert_eq!(prepared(&bytes, "bomb.png"), Err(Unusable::TooManyPixels));
    }

    fn crc(bytes: &[u8]) -> u32 {
        let mut sum = flate2::Crc::new();
        sum.update(bytes);
        sum.sum()
    }

    #[test]
    fn a_stored_picture_is_read_as_it_was() {
        let picture = prepared(&encoded(ImageFormat::Png), " a\nb.png ").unwrap();
        let stored = serde_json::to_string(&picture).unwrap();
        assert_eq!(serde_json::from_str::<Picture>(&stored).unwrap(), picture);
        assert_eq!(picture.describe(), "a b.png (image/png, 64 × 32)");
        assert_eq!(format!("{picture:?}"), picture.describe());
    }

    proptest! {
        /// Whatever is damaged gives a picture within the bounds, or a reason.
        #[test]
        fn damaged_pictures_do_no_harm(kind in 0_usize..4, at in any::<prop::sample::Index>(), byte in any::<u8>(), end in any::<prop::sample::Index>()) {
            let format = [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP][kind];
            let mut bytes = encoded(format);
            let place = at.index(bytes.len());
            bytes[place] = byte;
            bytes.truncate(end.index(bytes.len()) + 1);
            if let Ok(picture) = prepared(&bytes, "x") {
                prop_assert!(picture.width <= SHOWN_EDGE && picture.height <= SHOWN_EDGE);
                prop_assert!(picture.bytes().len() <= MOST_BYTES);
            }
        }
    }
}
