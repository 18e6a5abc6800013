//! Packs whose few bytes describe a great many, made in the container and fetched out of it by the
//! program.

use crate::attempt::{Attempt, End};
use crate::class::Class;

/// Writes packs by hand. A delta is a list of copies from its base, one byte for each 64 KiB.
const PACKS: &str = r"
import hashlib, struct, subprocess, zlib
def git(*words, data=b''):
    return subprocess.run(['git', *words], input=data, stdout=subprocess.PIPE, check=True).stdout.decode().strip()
def head(kind, size):
    out = [(kind << 4) | (size & 15)]
    size >>= 4
    while size:
        out[-1] |= 128
        out.append(size & 127)
        size >>= 7
    return bytes(out)
def length(number):
    out = []
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + [number])
def pack(objects):
    body = b'PACK' + struct.pack('>II', 2, len(objects)) + b''.join(objects)
    return body + hashlib.sha1(body).digest()
BASE = 65536
def base(fill=b'\0'):
    return head(3, BASE) + zlib.compress(fill * BASE, 9)
def named(fill=b'\0'):
    return hashlib.sha1(b'blob %d\0' % BASE + fill * BASE).digest()
def delta(of, copies, size=BASE):
    text = length(size) + length(copies * BASE) + b'\x80' * copies
    return head(7, len(text)) + of + zlib.compress(text, 9)
def zeros(copies):
    digest = hashlib.sha1(b'blob %d\0' % (copies * BASE))
    for _ in range(copies):
        digest.update(b'\0' * BASE)
    return digest.hexdigest()
def show(files):
    entries = ''.join('100644 blob %s\t%s\n' % (one, name) for name, one in files)
    tree = git('mktree', '--missing', data=entries.encode())
    git('update-ref', 'HEAD', git('commit-tree', tree, '-p', 'HEAD', '-m', 'Innocent'))
def store(objects):
    git('index-pack', '--stdin', '--threads=1', data=pack(objects))
";

pub fn all() -> Vec<Attempt> {
    let packed = |name, python: &str| {
        let command = format!("python3 - <<'PROGRAM'\n{PACKS}\n{python}\nPROGRAM");
        Attempt::new(Class::Delta, name, End::Refused).succeeds(&command)
    };
    vec![
        packed(
            "gigabyte",
            "store([base(), delta(named(), 16384)])\nshow([('a', zeros(16384))])",
        )
        .short(),
        packed(
            "several",
            "counts = [4096 + n for n in range(4)]\nstore([base()] + [delta(named(), n) for n in counts])\nshow([('f%d' % n, zeros(n)) for n in counts])",
        ),
        packed(
            "many",
            "counts = [512 + n for n in range(24)]\nstore([base()] + [delta(named(), n) for n in counts])\nshow([('f%d' % n, zeros(n)) for n in counts])",
        ),
        packed(
            "below-the-limit",
            "counts = [33 + n for n in range(60)]\nstore([base()] + [delta(named(), n) for n in counts])\nshow([('f%d' % n, zeros(n)) for n in counts])",
        ),
        packed(
            "earlier-commit",
            "store([base(), delta(named(), 8192)])\ntop = git('rev-parse', 'HEAD^{tree}')\nshow([('a', zeros(8192))])\n\
             git('update-ref', 'HEAD', git('commit-tree', top, '-p', 'HEAD', '-m', 'Undo'))",
        ),
    ]
}
