//! The key that commits are signed with: what cannot sign is refused before anything begins.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::{Given, with_github};

/// A configuration that names the key file, and the file.
fn with_key(arguments: &[&str]) -> (Given, PathBuf) {
    let given = with_github("git: {signing_key_file: key}\n");
    let file = given.folder.path().join("key");
    let made = Command::new("ssh-keygen")
        .args(["-q", "-C", "", "-f"])
        .arg(&file)
        .args(arguments)
        .status();
    assert!(made.unwrap().success());
    (given, file)
}

#[test]
fn a_key_of_ones_own_is_taken() {
    for kind in ["ed25519", "rsa"] {
        let (given, file) = with_key(&["-t", kind, "-N", ""]);
        assert_eq!(given.loads().git.signing_key_file, Some(file));
    }
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let (given, file) = with_key(&["-t", "ed25519", "-N", ""]);
    for mode in [0o604, 0o640] {
        set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        let faults = given.faults();
        let shown = format!("its mode is {mode:04o}");
        assert!(faults.contains(&shown) && !faults.contains("PRIVATE"), "{faults}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(faults.replace(&shown, "its mode is MODE"), @"config.yaml:3:7: git.signing_key_file: the file key may be read by others (its mode is MODE); keep it to its owner: chmod 600 key");
        }
    }
}

#[test]
fn a_key_that_asks_for_something_each_time_or_signs_differently_is_refused_with_the_mend() {
    let (given, _file) = with_key(&["-t", "ed25519", "-N", "a passphrase"]);
    insta::assert_snapshot!(given.faults(), @"config.yaml:3:7: git.signing_key_file: the file key is protected by a passphrase, which nobody is there to type; give the program a key of its own, or take the passphrase off with `ssh-keygen -p -N '' -f key`");
    let (given, _file) = with_key(&["-t", "ecdsa", "-N", ""]);
    insta::assert_snapshot!(given.faults(), @"config.yaml:3:7: git.signing_key_file: the file key is a key of the kind ecdsa-sha2-nistp256, which cannot give a commit the same signature twice; make one with `ssh-keygen -t ed25519 -N '' -f FILE`");
}

#[test]
fn what_is_no_key_is_refused_with_the_command_that_makes_one() {
    let (given, file) = with_key(&["-t", "rsa", "-m", "PEM", "-N", ""]);
    insta::assert_snapshot!(given.faults(), @"config.yaml:3:7: git.signing_key_file: the file key is no OpenSSH private key; make one with `ssh-keygen -t ed25519 -N '' -f FILE`, or bring this one into that form with `ssh-keygen -p -N '' -f key`");
    for text in [
        "",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\n-----END OPENSSH PRIVATE KEY-----\n",
    ] {
        std::fs::write(&file, text).unwrap();
        assert!(given.faults().contains("is no OpenSSH private key"), "{text}");
    }
    std::fs::remove_file(&file).unwrap();
    insta::assert_snapshot!(given.faults(), @"config.yaml:3:7: git.signing_key_file: the file key cannot be read: No such file or directory (os error 2)");
}
