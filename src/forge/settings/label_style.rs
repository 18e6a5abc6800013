//! The look of the program's labels on a forge: a colour and a line on the label's meaning.

use crate::task::labels::Labels;

/// The look of a label that the program creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabelStyle {
    pub(crate) colour: (u8, u8, u8),
    pub(crate) description: &'static str,
}

impl LabelStyle {
    /// Returns the look of the label `name`, which is grey for a label that is not the program's
    /// own.
    pub(crate) fn of(name: &str, labels: &Labels) -> Self {
        let looks = [
            (
                &labels.trigger,
                (0x1d, 0x76, 0xdb),
                "Put on by a person: the coding agent takes the item on",
            ),
            (&labels.processing, (0xfb, 0xca, 0x04), "The coding agent works on it"),
            (
                &labels.waiting,
                (0xd9, 0x3f, 0x0b),
                "The coding agent waits for an answer",
            ),
            (
                &labels.paused,
                (0xc5, 0xde, 0xf5),
                "The coding agent has set it aside for now",
            ),
            (&labels.stopped, (0x6a, 0x73, 0x7d), "A person stopped the coding agent"),
            (
                &labels.failed,
                (0xb6, 0x02, 0x05),
                "The coding agent could not do it; the last comment says why",
            ),
            (&labels.done, (0x0e, 0x8a, 0x16), "The coding agent is done"),
        ];
        let own = looks
            .into_iter()
            .find(|(own, ..)| own.to_lowercase() == name.to_lowercase());
        own.map_or(
            Self {
                colour: (0xed, 0xed, 0xed),
                description: "",
            },
            |(_, colour, description)| Self { colour, description },
        )
    }

    /// Returns the colour as six hexadecimal digits.
    pub(crate) fn hex(self) -> String {
        let (red, green, blue) = self.colour;
        format!("{red:02x}{green:02x}{blue:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_of_ours_has_a_look_of_its_own() {
        let labels = Labels::default();
        let mut colours: Vec<_> = labels
            .all()
            .iter()
            .map(|name| LabelStyle::of(name, &labels).hex())
            .collect();
        assert!(!colours.contains(&LabelStyle::of("bug", &labels).hex()));
        colours.sort();
        colours.dedup();
        assert_eq!(colours.len(), 7);
        // GitHub takes at most 100 characters.
        assert!(
            labels
                .all()
                .iter()
                .all(|name| LabelStyle::of(name, &labels).description.len() <= 100)
        );
    }
}
