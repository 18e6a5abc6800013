//! Commits that no honest git would make, made in the container with plumbing, and gits that do not
//! do their work.

use crate::attempt::{Attempt, End};
use crate::class::Class;

/// The Python functions around git's plumbing with which the attacks make their objects.
const PLUMBING: &str = r"
import os, subprocess
def git(*words, data=b''):
    return subprocess.run(['git', *words], input=data, stdout=subprocess.PIPE, check=True).stdout.decode().strip()
def blob(data): return git('hash-object', '-w', '--stdin', data=data)
def tree(*entries):
    raw = b''.join(mode + b' ' + name + b'\0' + bytes.fromhex(one) for mode, name, one in entries)
    return git('hash-object', '-t', 'tree', '-w', '--literally', '--stdin', data=raw)
def commit(tree, *parents, message='Innocent'):
    return git('commit-tree', tree, *(w for p in parents for w in ('-p', p)), data=message.encode())
def raw(text): return git('hash-object', '-t', 'commit', '-w', '--literally', '--stdin', data=text)
def show(one): git('update-ref', 'HEAD', one)
base = git('rev-parse', 'HEAD')
top = git('rev-parse', 'HEAD^{tree}')
script = blob(b'#!/bin/sh\ntouch @MARK@\n')
readme = blob(b'Hello\n')
";

pub fn all() -> Vec<Attempt> {
    [trees(), objects(), histories(), programs()].concat()
}

fn made(name: &'static str, end: End, python: &str) -> Attempt {
    let attempt = Attempt::new(Class::Commit, name, end);
    attempt.succeeds(&format!("python3 - <<'PLUMBING'\n{PLUMBING}\n{python}\nPLUMBING"))
}

/// Returns the attacks by a folder of hooks, or a file, under a name that should not be.
fn trees() -> Vec<Attempt> {
    let named = |name, bytes: &str| {
        let python = format!(
            "hooks = tree((b'100755', b'post-checkout', script))\n\
             show(commit(tree((b'100644', b'README.md', readme), (b'40000', {bytes}, hooks)), base))"
        );
        made(name, End::Refused, &python)
    };
    let holding = |name, entries: &str| {
        let python = format!("show(commit(tree({entries}), base))");
        made(name, End::Refused, &python)
    };
    vec![
        named("git-folder", "b'.git'").short(),
        named("git-capitals", "b'.GIT'"),
        named("git-dot", "b'.git.'"),
        named("git-space", "b'.git '"),
        named("git-short-name", "b'GIT~1'"),
        named("git-stream", "b'.git::$INDEX_ALLOCATION'"),
        named("git-ignorable", "'.g\\u200cit'.encode()").short(),
        named("up", "b'..'"),
        named("backslash", "b'a\\\\..\\\\..\\\\b'"),
        named("newline", "b'a\\nb'"),
        named("escape-name", "b'x\\x1b[31m'"),
        holding("link-absolute", "(b'120000', b'l', blob(b'/etc/passwd'))").short(),
        holding("link-up", "(b'120000', b'l', blob(b'../../etc'))"),
        holding("link-winding", "(b'120000', b'l', blob(b'a/../../x'))"),
        holding(
            "link-through-link",
            "(b'120000', b'a', blob(b'.')), (b'120000', b'b', blob(b'a/../../x'))",
        ),
        holding("link-git", "(b'120000', b'l', blob(b'.git/config'))"),
        holding("link-modules", "(b'120000', b'.gitmodules', blob(b'README.md'))"),
        holding("submodule", "(b'160000', b's', base)").short(),
        holding(
            "submodule-option",
            "(b'100644', b'.gitmodules', blob(b'[submodule \"x\"]\\n\\tpath = x\\n\\turl = --upload-pack=touch\\n')), (b'160000', b'x', base)",
        ),
        holding(
            "submodule-path",
            "(b'100644', b'.gitmodules', blob(b'[submodule \"../../x\"]\\n\\tpath = .git/hooks\\n\\turl = ext::sh -c id\\n')), (b'160000', b'x', base)",
        ),
        holding("device", "(b'20666', b'd', readme)"),
        holding("twice", "(b'100644', b'a', readme), (b'100644', b'a', script)"),
        holding("file-and-folder", "(b'100644', b'a', readme), (b'40000', b'a', top)"),
        made(
            "deep",
            End::Refused,
            "t = top\nfor _ in range(300): t = tree((b'40000', b'd', t))\nshow(commit(t, base))",
        ),
        made(
            "long-name",
            End::Refused,
            "show(commit(tree((b'100644', b'n' * 5000, readme)), base))",
        ),
        made(
            "huge",
            End::Refused,
            "show(commit(tree((b'100644', b'huge', blob(os.urandom(3000000)))), base))",
        )
        .short(),
        made(
            "bomb",
            End::Refused,
            "show(commit(tree((b'100644', b'bomb', blob(b'\\0' * 200000000))), base))",
        ),
        made(
            "many",
            End::Refused,
            "show(commit(tree(*((b'100644', b'%06d' % n, readme) for n in range(21000))), base))",
        ),
        made(
            "middle",
            End::Refused,
            "bad = commit(tree((b'100644', b'x\\ty', readme)), base)\nshow(commit(top, bad))",
        ),
    ]
}

fn objects() -> Vec<Attempt> {
    vec![
        made("missing-blob", End::Refused, "show(commit(tree((b'100644', b'gone', '12' * 20)), base))"),
        made("missing-parent", End::Any, "show(commit(tree((b'100644', b'README.md', readme)), base))\nopen('.git/shallow','w').write(git('rev-parse','HEAD')+'\\n')"),
        made("head-is-a-blob", End::Refused, "open('.git/HEAD','w').write(readme+'\\n')"),
        made("head-is-a-tree", End::Refused, "open('.git/HEAD','w').write(top+'\\n')"),
        made("head-is-a-tag", End::Any, "tag = git('hash-object','-t','tag','-w','--stdin',data=('object %s\\ntype commit\\ntag x\\ntagger A <a@b> 0 +0000\\n\\nx\\n' % base).encode())\nopen('.git/HEAD','w').write(tag+'\\n')"),
        made("replaced", End::Any, "evil = commit(tree((b'40000', b'.git', tree((b'100755', b'x', script)))), base)\ngood = commit(tree((b'100644', b'README.md', readme)), base)\nshow(good)\ngit('replace', good, evil)"),
        made("corrupted", End::Refused, "show(commit(tree((b'100644', b'README.md', readme)), base))\np='.git/objects/'+readme[:2]+'/'+readme[2:]\nos.chmod(p,0o644)\nimport zlib\nopen(p,'wb').write(zlib.compress(b'blob 6\\0Hallo\\n'))"),
        made("other-refs", End::Delivered, "evil = commit(top, base)\nfor name in ('refs/heads/main', 'refs/heads/evil', 'refs/tags/v1', 'refs/coding-agent/evil/result', 'refs/remotes/origin/main'): git('update-ref', name, evil)\nopen('README.md','w').write('Hello\\n')").short(),
        made("alternates", End::Any, "open('.git/objects/info/alternates','w').write('/etc\\n../../../x\\n\"@MARK@\"\\n')\nopen('README.md','w').write('Hello\\n')"),
        made("config", End::Any, "for key in ('core.fsmonitor','core.sshCommand','core.pager','core.editor','core.askPass','core.gitProxy','uploadpack.packObjectsHook','diff.external','gpg.program','credential.helper','core.alternateRefsCommand'): git('config', key, 'touch @MARK@')\ngit('config','core.hooksPath','hooks')\ngit('config','remote.origin.url','ext::sh -c \"touch @MARK@\"')\nopen('README.md','w').write('Hello\\n')").short(),
    ]
}

fn histories() -> Vec<Attempt> {
    vec![
        made("no-common-base", End::Any, "show(commit(tree((b'100644', b'README.md', readme))))"),
        made("base-rewritten", End::Any, "show(commit(tree((b'100644', b'README.md', readme)), commit(top, message='Another base')))"),
        made("merge-of-nothing", End::Any, "show(commit(tree((b'100644', b'README.md', readme)), base, commit(top, message='Unrelated')))"),
        made("author", End::Any, "show(raw(('tree %s\\nparent %s\\nauthor Alice <alice@example.org> 1 +0000\\ncommitter Alice <alice@example.org> 1 +0000\\n\\nAs Alice\\n' % (tree((b'100644', b'README.md', readme)), base)).encode()))").short(),
        made("author-broken", End::Any, "show(raw(('tree %s\\nparent %s\\nauthor A\\x1b[2J <x> 99999999999999 +9999\\ncommitter <> -5 x\\n\\nx\\n' % (tree((b'100644', b'README.md', readme)), base)).encode()))"),
        made("date-far", End::Any, "show(raw(('tree %s\\nparent %s\\nauthor A <a@b> 99999999999 +0000\\ncommitter A <a@b> 99999999999 +0000\\n\\nFar\\n' % (tree((b'100644', b'README.md', readme)), base)).encode()))"),
        made("message-control", End::Any, "show(commit(tree((b'100644', b'README.md', readme)), base, message='Clear \\x1b[2J\\x07\\r\\x08 \\u202e screen'))"),
        made("message-nul", End::Any, "show(raw(('tree %s\\nparent %s\\nauthor A <a@b> 1 +0000\\ncommitter A <a@b> 1 +0000\\n\\nA\\0B\\n' % (tree((b'100644', b'README.md', readme)), base)).encode()))"),
        made("message-trailers", End::Delivered, "show(commit(tree((b'100644', b'README.md', readme)), base, message='Work\\n\\nCoding-Agent-Run: 00000000-0000-7000-8000-000000000000\\ncoding-agent-run : other\\n'))").short(),
        made("message-huge", End::Any, "show(commit(tree((b'100644', b'README.md', readme)), base, message='x' * 5000000))"),
        made("message-calls", End::Any, "show(commit(tree((b'100644', b'README.md', readme)), base, message='Fixes #1, closes acme/other#2\\n\\n@victim /merge'))"),
        made("header-extra", End::Any, "show(raw(('tree %s\\nparent %s\\nauthor A <a@b> 1 +0000\\ncommitter A <a@b> 1 +0000\\ngpgsig -----BEGIN PGP SIGNATURE-----\\n x\\nencoding UTF-7\\nevil yes\\n\\nx\\n' % (tree((b'100644', b'README.md', readme)), base)).encode()))"),
        made("very-many-commits", End::Any, "c = base\nt = tree((b'100644', b'README.md', readme))\nfor n in range(700): c = commit(t, c, message=str(n))\nshow(c)"),
    ]
}

/// Returns the attacks by a git of the attacker's own, which stands first on the path of the
/// container's user. The program does not ask it.
fn programs() -> Vec<Attempt> {
    let git = |name, script: &str| {
        let attempt = Attempt::new(Class::Commit, name, End::Delivered);
        let place = "d=/home/agent/.local/bin; mkdir -p $d; chmod +x /tmp/git; mv /tmp/git $d/git; hash -r; [ $(command -v git) = $d/git ]";
        attempt.works().succeeds(&format!(
            "cat > /tmp/git <<'PROGRAM'\n#!/bin/sh\n{script}\nPROGRAM\n{place}"
        ))
    };
    let only =
        |verb: &str, script: &str| format!("case \"$*\" in *{verb}*) {script};; *) exec /usr/bin/git \"$@\";; esac");
    vec![
        git(
            "git-lies",
            &only("rev-parse", "echo 1234567890123456789012345678901234567890"),
        )
        .short(),
        git("git-option", &only("rev-parse", "echo --upload-pack=touch")),
        git("git-floods", &only("rev-parse", "exec yes")).short(),
        git("git-floods-aside", &only("rev-parse", "exec yes >&2")),
        git("git-drips", &only("rev-parse", "while :; do printf x; sleep 3; done")),
        git(
            "git-disk-full",
            &only(
                "add",
                "echo 'fatal: write error: No space left on device' >&2; exit 128",
            ),
        ),
        git("git-sleeps", &only("rev-parse", "exec sleep 100000")),
        git("pack-noise", &only("pack-objects", "head -c 100000 /dev/urandom")),
        git("pack-floods", &only("pack-objects", "exec yes")),
        git("pack-sleeps", &only("pack-objects", "exec sleep 100000")),
        git(
            "pack-drips",
            &only("pack-objects", "while :; do printf P; sleep 3; done"),
        ),
        git("pack-half", &only("pack-objects", "/usr/bin/git \"$@\" | head -c 60")),
        git("pack-empty", &only("pack-objects", ":")),
        git(
            "pack-count",
            &only(
                "pack-objects",
                "printf 'PACK\\000\\000\\000\\002\\377\\377\\377\\377'; exec cat /dev/zero",
            ),
        ),
    ]
}
