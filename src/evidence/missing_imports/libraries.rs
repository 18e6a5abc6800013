//! Names of the standard libraries of some languages, with where they come from: those that are
//! used most. Lists are separated by spaces.

/// Packages of Java, with their classes.
const JAVA: [(&str, &str); 12] = [
    (
        "java.util",
        "ArrayDeque ArrayList Arrays Collection Collections Comparator Deque HashMap HashSet Iterator \
         LinkedHashMap LinkedHashSet LinkedList List Locale Map NoSuchElementException Objects \
         Optional PriorityQueue Queue Random Scanner Set StringJoiner TreeMap TreeSet UUID",
    ),
    (
        "java.util.function",
        "BiConsumer BiFunction BinaryOperator Consumer Function IntFunction Predicate Supplier \
         ToIntFunction UnaryOperator",
    ),
    ("java.util.stream", "Collectors IntStream LongStream Stream"),
    ("java.util.regex", "Matcher Pattern"),
    (
        "java.util.concurrent",
        "Callable CompletableFuture ConcurrentHashMap CountDownLatch ExecutorService Executors Future \
         TimeUnit",
    ),
    (
        "java.util.concurrent.atomic",
        "AtomicBoolean AtomicInteger AtomicLong AtomicReference",
    ),
    ("java.util.concurrent.locks", "Lock ReentrantLock"),
    (
        "java.io",
        "BufferedReader BufferedWriter ByteArrayInputStream ByteArrayOutputStream File FileReader \
         FileWriter IOException InputStream InputStreamReader OutputStream PrintStream PrintWriter \
         Reader StringReader StringWriter UncheckedIOException Writer",
    ),
    ("java.nio.file", "Files Path Paths"),
    ("java.nio.charset", "Charset StandardCharsets"),
    ("java.math", "BigDecimal BigInteger RoundingMode"),
    (
        "java.time",
        "Duration Instant LocalDate LocalDateTime LocalTime ZonedDateTime",
    ),
];

/// Packages of Go, which are used by the last part of their path.
const GO: &str = "bufio bytes cmp container/heap container/list context encoding/base64 encoding/binary encoding/csv \
     encoding/hex encoding/json errors fmt io log maps math math/big math/bits math/rand net/http net/url os \
     os/exec path/filepath reflect regexp runtime slices sort strconv strings sync sync/atomic time unicode unicode/utf8";

/// Modules of Python that are used by their name.
const PYTHON_MODULES: &str = "argparse asyncio base64 bisect collections contextlib copy csv functools hashlib heapq importlib \
     inspect io itertools json logging math operator os random re shutil statistics string subprocess sys \
     tempfile textwrap threading time unicodedata uuid";

/// Modules of Python, with the names that are imported from them.
const PYTHON_NAMES: [(&str, &str); 15] = [
    ("abc", "ABC abstractmethod"),
    ("collections", "Counter OrderedDict defaultdict deque namedtuple"),
    ("collections.abc", "Mapping MutableMapping"),
    ("contextlib", "contextmanager suppress"),
    ("dataclasses", "dataclass"),
    ("datetime", "timedelta timezone"),
    ("decimal", "Decimal ROUND_HALF_EVEN ROUND_HALF_UP"),
    ("enum", "Enum IntEnum"),
    ("fractions", "Fraction"),
    (
        "functools",
        "cached_property lru_cache partial reduce total_ordering wraps",
    ),
    ("heapq", "heapify heappop heappush"),
    (
        "itertools",
        "accumulate chain combinations groupby permutations product zip_longest",
    ),
    ("math", "ceil floor isclose sqrt"),
    ("pathlib", "Path"),
    (
        "typing",
        "Any Callable Dict Iterable Iterator List Optional Sequence Tuple TypeVar Union",
    ),
];

/// Modules of Node that are used by their name.
const NODE_MODULES: &str = "assert child_process fs http https os path readline util zlib";

/// Modules of Node, with the names that are imported from them.
const NODE_NAMES: [(&str, &str); 5] = [
    ("child_process", "execFileSync execSync spawn spawnSync"),
    ("crypto", "createHash createHmac randomBytes randomUUID"),
    ("events", "EventEmitter"),
    ("fs", "existsSync mkdirSync readFileSync readdirSync writeFileSync"),
    ("util", "inspect isDeepStrictEqual promisify"),
];

/// Returns the line that imports a class of Java's own library.
pub(super) fn java(name: &str) -> Option<String> {
    let package = place_of(&JAVA, name)?;
    Some(format!("import {package}.{name};"))
}

/// Returns the line that imports a package of Go's own library, which is used as `name`.
pub(super) fn go(name: &str) -> Option<String> {
    let path = GO.split(' ').find(|path| path.rsplit('/').next() == Some(name))?;
    Some(format!("import \"{path}\""))
}

/// Returns the line that imports a module of Python's own library, or a name of one.
pub(super) fn python(name: &str) -> Option<String> {
    if has(PYTHON_MODULES, name) {
        return Some(format!("import {name}"));
    }
    let module = place_of(&PYTHON_NAMES, name)?;
    Some(format!("from {module} import {name}"))
}

/// Returns the line that imports a module of Node, or a name of one, into an ECMAScript module or
/// into one of the older sort.
pub(super) fn node(name: &str, is_module: bool) -> Option<String> {
    let (what, module) = if has(NODE_MODULES, name) {
        (name.to_owned(), name)
    } else {
        (format!("{{ {name} }}"), place_of(&NODE_NAMES, name)?)
    };
    Some(if is_module {
        format!("import {what} from \"node:{module}\";")
    } else {
        format!("const {what} = require(\"node:{module}\");")
    })
}

fn has(names: &str, name: &str) -> bool {
    names.split(' ').any(|own| own == name)
}

fn place_of(places: &[(&'static str, &str)], name: &str) -> Option<&'static str> {
    let mut places = places.iter();
    places.find(|(_, names)| has(names, name)).map(|(place, _)| *place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_name_has_two_places() {
        let names = |places: &'static [(&str, &str)]| places.iter().flat_map(|(_, names)| names.split(' '));
        let last = GO.split(' ').filter_map(|path| path.rsplit('/').next());
        for all in [
            names(&JAVA).collect::<Vec<_>>(),
            names(&PYTHON_NAMES).chain(PYTHON_MODULES.split(' ')).collect(),
            names(&NODE_NAMES).chain(NODE_MODULES.split(' ')).collect(),
            last.collect(),
        ] {
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{all:?}");
        }
    }

    #[test]
    fn lines_are_those_of_the_language() {
        assert_eq!(go("json").as_deref(), Some("import \"encoding/json\""));
        assert_eq!(python("Path").as_deref(), Some("from pathlib import Path"));
        assert_eq!(
            node("promisify", false).as_deref(),
            Some("const { promisify } = require(\"node:util\");")
        );
        assert_eq!(node("fs", true).as_deref(), Some("import fs from \"node:fs\";"));
        for name in ["Total", "java", "encoding/json"] {
            assert_eq!(
                (java(name), go(name), python(name), node(name, true)),
                (None, None, None, None)
            );
        }
    }
}
