//! Decides what a contract file says: the checked form of every setting, or every problem at once.
//! It exists so that the rest of the gateway never sees a file, a default that is not filled in, or a text with a unit.
//! It refuses what it does not know and what has no effect: a contract is a promise, not a wish list.

mod across;
mod authority;
mod caching;
mod classify;
mod conditions;
mod dangers;
mod dependency;
pub mod diag;
pub mod documents;
mod forwarding;
mod gateway;
mod hints;
mod identity;
mod keep_if;
pub mod keys;
pub mod kinds;
mod ladder;
mod late;
pub mod lints;
mod network;
pub mod outside;
pub mod page;
pub mod pattern;
mod pointer;
mod probe;
mod protection;
mod ramp;
mod reader;
mod refresh;
mod retry;
mod rewrite;
pub mod room;
mod route;
pub mod schema;
pub mod sources;
mod spread;
mod steering;
mod store;
pub mod units;

pub use authority::{Authority, FIELDS_MAX as AUTHORITY_FIELDS_MAX};
pub use caching::Caching;
pub use classify::{Classify, STATUSES_MAX};
pub use conditions::{CONDITIONS_MAX, Conditions, Field, Host, Rank};
pub use dependency::{Breaker, Dependency, Resource, Upstream};
pub use diag::{Diagnostics, Places};
pub(crate) use forwarding::keys_of_reads;
pub use forwarding::{Class, OtherMethods};
pub use gateway::{AccessLog, Gateway};
pub use hints::{GRPC_TIMEOUT, Hints};
pub use identity::{Identity, IdentityPart};
pub use keep_if::{KeepIf, QUESTIONS_MAX};
pub use ladder::{Alternate, DefaultAnswer, Rung};
pub use network::{NETWORKS_MAX, Network};
pub use pointer::{Pointer, Stands, has_listed};
pub use probe::HealthProbe;
pub use rewrite::{CHANGES_MAX, FieldChanges, Rewrite, RewriteHost};
pub use route::{Route, ScopePart};
pub use spread::Spread;
pub use steering::Steering;
pub use store::Store;

use std::path::{Path, PathBuf};

use reader::Reader;
use toml::de::{DeTable, DeValue};

/// A checked contract.
#[derive(Clone, Debug, PartialEq)]
pub struct Contract {
    /// Settings of the gateway itself.
    pub gateway: Gateway,
    /// Where copies are kept that are to survive the process; `None` where they are in memory alone.
    pub store: Option<Store>,
    /// Named capacities, by name.
    pub resources: Vec<Resource>,
    /// What is called, by name.
    pub dependencies: Vec<Dependency>,
    /// Who decides what callers may do, by name.
    pub authorities: Vec<Authority>,
    /// What is promised to callers, in the order of the file.
    pub routes: Vec<Route>,
}

/// A contract as it was read, with what is needed to show further problems.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The contract.
    pub contract: Contract,
    /// Where its settings stand.
    pub places: Places,
    /// Without problems, perhaps with warnings; it knows the files.
    pub diagnostics: Diagnostics,
    /// Every file that was read: the contract, what it includes, and what values came from.
    pub files: Vec<PathBuf>,
}

/// Reads a contract.
///
/// # Errors
/// Every problem found. When the file is not TOML at all, the problems of its syntax alone.
///
/// ```
/// let text = r#"
/// [gateway]
/// listen = "127.0.0.1:8080"
/// [dependencies.catalog]
/// urls = ["http://127.0.0.1:8000"]
/// [[routes]]
/// name = "product"
/// match = { path = "/products/{id}" }
/// class = "read"
/// from = "catalog"
/// ladder = [ { stale = "60s" } ]
/// "#;
/// let loaded = evenkeel_gateway::config::parse("contract.toml", text).unwrap();
/// assert_eq!(loaded.contract.routes[0].name, "product");
/// ```
pub fn parse(file: &str, text: &str) -> Result<Loaded, Diagnostics> {
    let mut places = Places::default();
    parse_with(file, text, None, &mut places)
}

/// Reads a contract whose included files were kept beside it, by name and text, and are not looked for.
///
/// # Errors
/// As [`parse`].
pub fn parse_kept(file: &str, text: &str, included: &[(String, String)]) -> Result<Loaded, Diagnostics> {
    let mut places = Places::default();
    parse_with(file, text, Some(included), &mut places)
}

/// Reads a contract from its file.
///
/// # Errors
/// [`NotLoaded`]: it cannot be read, or it has problems.
pub fn load(path: &Path) -> Result<Loaded, NotLoaded> {
    let name = path.display().to_string();
    let text = outside::read_once(path, outside::CONTRACT_MAX).map_err(|why| {
        let most = outside::CONTRACT_MAX >> 20;
        NotLoaded::Unreadable(format!(
            "cannot read {name}: {why}; name a contract, a TOML file in UTF-8 of at most {most} MiB"
        ))
    })?;
    parse(&name, &text).map_err(NotLoaded::Problems)
}

/// Reads a contract into given places.
fn parse_with(
    file: &str,
    text: &str,
    kept: Option<&[(String, String)]>,
    places: &mut Places,
) -> Result<Loaded, Diagnostics> {
    let mut diagnostics = Diagnostics::new(file, text);
    // A mark that some editors put at the beginning; spaces keep every place where it is.
    let unmarked = text.strip_prefix('\u{feff}').map(|rest| format!("   {rest}"));
    let Some(main) = documents::parse(unmarked.as_deref().unwrap_or(text), 0, &mut diagnostics) else {
        return Err(diagnostics);
    };
    let mut files = vec![PathBuf::from(file)];
    let parts = match kept {
        Some(kept) => documents::kept(kept),
        None => documents::included(file, &main, &mut diagnostics, &mut files),
    };
    let mut others = Vec::new();
    for part in &parts {
        let start = diagnostics.add_source(&part.name, &part.text);
        let table = documents::parse(&part.text, start, &mut diagnostics);
        others.extend(table.map(|table| (part.name.as_str(), start, table)));
    }
    if others.len() < parts.len() {
        return Err(diagnostics);
    }
    let document = documents::join((file, main), others, &mut diagnostics, &mut files);
    let contract = {
        let mut reader = Reader {
            diagnostics: &mut diagnostics,
            places,
        };
        read(&mut reader, &document)
    };
    match contract {
        Some(contract) if diagnostics.is_empty() => Ok(Loaded {
            contract,
            places: places.clone(),
            diagnostics,
            files,
        }),
        Some(_) | None => Err(diagnostics),
    }
}

/// Why there is no contract.
#[derive(Clone, Debug)]
pub enum NotLoaded {
    /// The file cannot be read, and why.
    Unreadable(String),
    /// It has problems.
    Problems(Diagnostics),
}

/// Reads the whole document. `None` only when something that cannot be done without is missing; every such case
/// has added a problem.
fn read(reader: &mut Reader<'_>, document: &DeTable<'_>) -> Option<Contract> {
    let empty = DeTable::new();
    let mut root = reader.open_table(String::new(), document, 0..0, keys::ROOT);
    let gateway_value = root.value("gateway");
    let store_value = root.value("store");
    let resources_value = root.value("resources");
    let dependencies_value = root.value("dependencies");
    let authorities_value = root.value("authorities");
    let routes_value = root.value("routes");
    root.require(
        "dependencies",
        "{ catalog = { urls = [\"http://127.0.0.1:8000\"] } }",
    );
    root.require("routes", "[ { name = \"all\", .. } ]");

    let gateway = match gateway_value {
        Some(value) => reader
            .open("gateway".to_owned(), value, keys::GATEWAY)
            .and_then(gateway::read),
        None => gateway::read(reader.open_table("gateway".to_owned(), &empty, 0..0, keys::GATEWAY)),
    };
    let store = store_value.and_then(|value| {
        reader
            .open("store".to_owned(), value, keys::STORE)
            .and_then(store::read)
    });
    let mut resources = Vec::new();
    for (place, name, value) in named(reader, "resources", resources_value) {
        if let Some(fields) = reader.open(place, value, keys::RESOURCE) {
            resources.extend(dependency::read_resource(name, fields));
        }
    }
    let askers = across::Askers::of(routes_value, authorities_value);
    askers.refuse_unused(reader, dependencies_value);
    across::refuse_unused_resources(reader, resources_value, dependencies_value);
    let names = names_of(resources_value);
    let mut dependencies = Vec::new();
    for (place, name, value) in named(reader, "dependencies", dependencies_value) {
        if let Some(fields) = reader.open(place, value, keys::DEPENDENCY) {
            let pressed = askers.most_pressed(&name);
            dependencies.extend(dependency::read(name, &names, pressed, fields));
        }
    }
    if let Some(gateway) = &gateway {
        refuse_itself(reader, gateway, &dependencies);
    }
    let names = names_of(dependencies_value);
    let mut authorities: Vec<Authority> = Vec::new();
    for (place, name, value) in named(reader, "authorities", authorities_value) {
        if let Some(fields) = reader.open(place, value, keys::AUTHORITY) {
            authorities.extend(authority::read(name, &names, fields));
        }
    }
    let doors = protection::Doors {
        names: names_of(authorities_value),
        authorities: &authorities,
        from_peers: gateway.as_ref().map(|gateway| &gateway.identity_from_peers),
    };
    let mut routes: Vec<Route> = Vec::new();
    if let Some(value) = routes_value {
        let list = value.get_ref().as_array();
        if list.is_none_or(|list| list.is_empty()) {
            let seen = reader::shown(value);
            reader.lint(
                lints::WRONG_TYPE,
                "routes",
                value.span(),
                &seen,
                "a list of at least one route",
                "write `[[routes]]`",
            );
        }
        for (index, value) in list.into_iter().flatten().enumerate() {
            let place = format!("routes[{index}]");
            reader.diagnostics.name_route(index, route::name_of(value));
            if let Some(fields) = reader.open(place.clone(), value, keys::ROUTE) {
                let known = ladder::Known {
                    names: &names,
                    read: &dependencies,
                    observe_only: gateway
                        .as_ref()
                        .is_some_and(|gateway| gateway.steering.observe_only),
                };
                let route = route::read(known, &doors, &routes, fields);
                if let Some(route) = &route {
                    refresh::check_beside(reader, &place, route, &dependencies);
                }
                routes.extend(route);
            }
        }
    }
    protection::check(reader, &doors, &routes, &dependencies);
    Some(Contract {
        gateway: gateway?,
        store,
        resources,
        dependencies,
        authorities,
        routes,
    })
}

/// A gateway that asks itself answers one request with as many as it has connections.
fn refuse_itself(reader: &mut Reader<'_>, gateway: &Gateway, dependencies: &[Dependency]) {
    for dependency in dependencies {
        for (key, address) in [("listen", gateway.listen), ("admin", gateway.admin)] {
            if dependency
                .upstreams
                .iter()
                .any(|upstream| upstream.is_at(address))
            {
                let place = format!("dependencies.{}.urls", dependency.name);
                let span = reader.places.find(&place).unwrap_or_default();
                let seen = format!("{address}, where `gateway.{key}` is");
                reader.lint(
                    lints::CALLS_ITSELF,
                    &place,
                    span,
                    &seen,
                    "the address of another server",
                    "correct the address, or move the gateway to another port",
                );
            }
        }
    }
}

/// Yields the tables inside a table of named things.
fn named<'t>(
    reader: &mut Reader<'_>,
    place: &str,
    value: Option<&'t toml::Spanned<DeValue<'t>>>,
) -> Vec<(String, String, &'t toml::Spanned<DeValue<'t>>)> {
    let Some(value) = value else {
        return Vec::new();
    };
    let Some(table) = value.get_ref().as_table() else {
        let seen = reader::shown(value);
        let mend = format!("write `[{place}.name]`");
        reader.lint(
            lints::WRONG_TYPE,
            place,
            value.span(),
            &seen,
            "a table of named tables",
            &mend,
        );
        return Vec::new();
    };
    table
        .iter()
        .map(|(key, value)| {
            let name = key.get_ref().clone().into_owned();
            (format!("{place}.{name}"), name, value)
        })
        .collect()
}

/// Returns the names inside a table of named things, also of those that have problems of their own.
fn names_of(value: Option<&toml::Spanned<DeValue<'_>>>) -> Vec<String> {
    value
        .and_then(|value| value.get_ref().as_table())
        .map(|table| {
            table
                .keys()
                .map(|key| key.get_ref().clone().into_owned())
                .collect()
        })
        .unwrap_or_default()
}
