//! The environment variables by which programs in a container find the way out.

use crate::egress::PROXY_PORT;

/// Variables that nearly everything reads that speaks HTTP: curl, git, pip, conda, npm, pnpm, Go,
/// Cargo.
const USUAL: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];

/// Variables of single programs.
const OWN: [&str; 2] = ["YARN_HTTP_PROXY", "YARN_HTTPS_PROXY"];

/// Variables whose options Maven and Gradle pass to Java, which reads no proxy variable.
const OF_JAVA: [&str; 2] = ["MAVEN_OPTS", "GRADLE_OPTS"];

const NEAR: &str = "localhost,127.0.0.1,::1";

/// Returns the variables as `NAME=value`; `services` bypass the proxy. The image's own values of
/// the Java variables are kept in front.
pub(crate) fn variables(of_image: &[String], services: &[&str]) -> Vec<String> {
    let address = format!("http://127.0.0.1:{PROXY_PORT}");
    let mut variables: Vec<String> = USUAL
        .iter()
        .chain(&OWN)
        .map(|name| format!("{name}={address}"))
        .collect();
    let near = [&[NEAR], services].concat().join(",");
    variables.extend(["NO_PROXY", "no_proxy"].map(|name| format!("{name}={near}")));
    // Node's own fetch reads the variables only with this.
    variables.push("NODE_USE_ENV_PROXY=1".to_owned());
    let options = java_options();
    variables.extend(OF_JAVA.map(|name| {
        let prefix = format!("{name}=");
        let before = of_image.iter().find_map(|variable| variable.strip_prefix(&prefix));
        match before.map(str::trim).filter(|before| !before.is_empty()) {
            Some(before) => format!("{name}={before} {options}"),
            None => format!("{name}={options}"),
        }
    }));
    variables
}

fn java_options() -> String {
    let of_scheme =
        ["http", "https"].map(|scheme| format!("-D{scheme}.proxyHost=127.0.0.1 -D{scheme}.proxyPort={PROXY_PORT}"));
    // Maven 3.9 uses them only with the last option. No list of hosts without a proxy: its `|`
    // would need quotes, which not every start script keeps.
    format!(
        "{} -Daether.connector.http.useSystemProperties=true",
        of_scheme.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_image_says_to_java_is_kept() {
        let image = ["PATH=/bin".to_owned(), "MAVEN_OPTS=-Xmx1g ".to_owned()];
        insta::assert_snapshot!(variables(&image, &["postgres", "redis"]).join("\n"), @r"
        HTTP_PROXY=http://127.0.0.1:3128
        HTTPS_PROXY=http://127.0.0.1:3128
        http_proxy=http://127.0.0.1:3128
        https_proxy=http://127.0.0.1:3128
        YARN_HTTP_PROXY=http://127.0.0.1:3128
        YARN_HTTPS_PROXY=http://127.0.0.1:3128
        NO_PROXY=localhost,127.0.0.1,::1,postgres,redis
        no_proxy=localhost,127.0.0.1,::1,postgres,redis
        NODE_USE_ENV_PROXY=1
        MAVEN_OPTS=-Xmx1g -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 -Daether.connector.http.useSystemProperties=true
        GRADLE_OPTS=-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 -Daether.connector.http.useSystemProperties=true
        ");
    }
}
