//! The columns of a dataset: `features` of info.json.

use std::path::Path;

use serde_json::{Map, Value, json};
use so101_hal::{CameraSpec, FrameSize};

use crate::error::{Error, Result};

/// Most features that a dataset may have here.
const MAX_FEATURES: usize = 4096;
/// Most axes of a feature.
const MAX_AXES: usize = 8;
/// Most elements of one value of a feature.
const MAX_ELEMENTS: u64 = 1 << 28;

/// The columns that LeRobot adds to every dataset, in its order; they follow all others.
pub const DEFAULT_FEATURES: [&str; 5] = ["timestamp", "frame_index", "episode_index", "index", "task_index"];

/// Type of the elements of a feature, with LeRobot's names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// `float16`
    Float16,
    /// `float32`
    Float32,
    /// `float64`
    Float64,
    /// `int8`
    Int8,
    /// `int16`
    Int16,
    /// `int32`
    Int32,
    /// `int64`
    Int64,
    /// `uint8`
    UInt8,
    /// `uint16`
    UInt16,
    /// `uint32`
    UInt32,
    /// `uint64`
    UInt64,
    /// `bool`
    Bool,
    /// `string`
    String,
    /// `image`: PNG bytes inside the table.
    Image,
    /// `video`: pictures in mp4 files beside the table.
    Video,
    /// Anything else, such as `language`; passed through.
    Other(String),
}

const DTYPES: [(&str, DType); 15] = [
    ("float16", DType::Float16),
    ("float32", DType::Float32),
    ("float64", DType::Float64),
    ("int8", DType::Int8),
    ("int16", DType::Int16),
    ("int32", DType::Int32),
    ("int64", DType::Int64),
    ("uint8", DType::UInt8),
    ("uint16", DType::UInt16),
    ("uint32", DType::UInt32),
    ("uint64", DType::UInt64),
    ("bool", DType::Bool),
    ("string", DType::String),
    ("image", DType::Image),
    ("video", DType::Video),
];

impl DType {
    /// From LeRobot's name; never fails, since unknown names are [`DType::Other`].
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        DTYPES
            .iter()
            .find(|(n, _)| *n == name)
            .map_or_else(|| Self::Other(name.to_owned()), |(_, d)| d.clone())
    }

    /// LeRobot's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Other(name) => name,
            known => DTYPES.iter().find(|(_, d)| d == known).map_or("", |(n, _)| n),
        }
    }

    /// Whether values are numbers or truth values, which have statistics per dimension.
    #[must_use]
    pub fn is_numeric(&self) -> bool {
        !matches!(self, Self::String | Self::Image | Self::Video | Self::Other(_))
    }
}

impl core::fmt::Display for DType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// One feature: type, shape of one row's value, names of its elements.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Feature {
    /// Type of the elements.
    pub dtype: DType,
    /// Shape of one row's value: `[1]` for a scalar, `[height, width, channels]` for pictures.
    pub shape: Vec<usize>,
    /// Names of the elements: a list, an object such as `{"motors": [..]}`, or null.
    pub names: Value,
    /// Of a video: size, codec, frame rate (`video.height`, `video.codec`, ...).
    pub info: Option<Map<String, Value>>,
    /// Keys that this crate does not know, kept as they are.
    pub extra: Map<String, Value>,
}

impl Feature {
    /// A feature without names.
    #[must_use]
    pub fn new(dtype: DType, shape: &[usize]) -> Self {
        Self { dtype, shape: shape.to_vec(), names: Value::Null, info: None, extra: Map::new() }
    }

    /// A vector of float32, one element a name.
    #[must_use]
    pub fn vector_f32<S: AsRef<str>>(names: &[S]) -> Self {
        let list = names.iter().map(|n| Value::from(n.as_ref())).collect();
        Self { names: Value::Array(list), ..Self::new(DType::Float32, &[names.len()]) }
    }

    /// A camera whose pictures are RGB of this size, in mp4 files.
    #[must_use]
    pub fn video(size: FrameSize) -> Self {
        let mut info = Map::new();
        info.insert("is_depth_map".into(), Value::Bool(false));
        Self {
            names: json!(["height", "width", "channels"]),
            info: Some(info),
            ..Self::new(DType::Video, &[size.height as usize, size.width as usize, 3])
        }
    }

    /// Elements of one row's value.
    #[must_use]
    pub fn width(&self) -> usize {
        self.shape.iter().product()
    }

    /// Names of the elements as a flat list, when they are given as a list or as an object that holds one.
    #[must_use]
    pub fn element_names(&self) -> Option<Vec<&str>> {
        let list = match &self.names {
            Value::Array(list) => list,
            Value::Object(map) if map.len() == 1 => map.values().next()?.as_array()?,
            _ => return None,
        };
        list.iter().map(Value::as_str).collect()
    }

    /// Facts about the video: `info`, or `video_info` as older versions called it.
    #[must_use]
    pub fn video_info(&self) -> Option<&Map<String, Value>> {
        self.info.as_ref().or_else(|| self.extra.get("video_info")?.as_object())
    }

    /// Width and height of the pictures of a video or image feature, whichever order of axes `names` says.
    #[must_use]
    pub fn picture_size(&self) -> Option<FrameSize> {
        if !matches!(self.dtype, DType::Video | DType::Image) {
            return None;
        }
        let [a, b, c] = *self.shape.as_slice() else { return None };
        let channels_first =
            self.element_names().is_some_and(|n| n.first().is_some_and(|n| n.starts_with("channel")));
        let (height, width) = if channels_first { (b, c) } else { (a, b) };
        Some(FrameSize::new(u32::try_from(width).ok()?, u32::try_from(height).ok()?))
    }

    /// Number of channels of the pictures of a video or image feature.
    #[must_use]
    pub fn picture_channels(&self) -> Option<usize> {
        self.picture_size()?;
        let channels_first =
            self.element_names().is_some_and(|n| n.first().is_some_and(|n| n.starts_with("channel")));
        if channels_first { self.shape.first() } else { self.shape.last() }.copied()
    }

    fn parse(name: &str, value: &Value, path: &Path) -> Result<Self> {
        let at = |key: &str| format!("features.{name}.{key}");
        let Value::Object(map) = value else {
            return Err(Error::key(format!("features.{name}"), "is not an object", path));
        };
        let mut feature = Self::new(DType::Bool, &[]);
        let mut seen = (false, false);
        for (key, value) in map {
            match (key.as_str(), value) {
                ("dtype", Value::String(s)) => {
                    feature.dtype = DType::from_name(s);
                    seen.0 = true;
                }
                ("dtype", _) => return Err(Error::key(at(key), "is not a string", path)),
                ("shape", _) => {
                    feature.shape =
                        parse_shape(value).map_err(|problem| Error::key(at(key), problem, path))?;
                    seen.1 = true;
                }
                ("names", _) => feature.names = value.clone(),
                ("info", Value::Object(info)) => feature.info = Some(info.clone()),
                ("info", Value::Null) => {}
                ("info", _) => return Err(Error::key(at(key), "is not an object", path)),
                _ => {
                    feature.extra.insert(key.clone(), value.clone());
                }
            }
        }
        for (key, seen) in [("dtype", seen.0), ("shape", seen.1)] {
            if !seen {
                return Err(Error::key(at(key), "is missing", path));
            }
        }
        Ok(feature)
    }

    fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("dtype".into(), self.dtype.name().into());
        map.insert("shape".into(), self.shape.clone().into());
        map.insert("names".into(), self.names.clone());
        if let Some(info) = &self.info {
            map.insert("info".into(), Value::Object(info.clone()));
        }
        map.extend(self.extra.iter().map(|(k, v)| (k.clone(), v.clone())));
        Value::Object(map)
    }
}

fn parse_shape(value: &Value) -> Result<Vec<usize>, String> {
    let Value::Array(axes) = value else { return Err("is not a list of numbers".into()) };
    if axes.len() > MAX_AXES {
        return Err(format!("has {} axes, at most {MAX_AXES} are accepted", axes.len()));
    }
    let mut elements = 1_u64;
    let mut shape = Vec::with_capacity(axes.len());
    for axis in axes {
        let n =
            axis.as_u64().filter(|n| *n > 0).ok_or_else(|| format!("holds {axis}, not a number above 0"))?;
        elements = elements
            .checked_mul(n)
            .filter(|n| *n <= MAX_ELEMENTS)
            .ok_or_else(|| format!("{value} has more than {MAX_ELEMENTS} elements"))?;
        shape.push(usize::try_from(n).map_err(|_| format!("holds {n}, which is too large"))?);
    }
    if shape.is_empty() { Err("is empty, a scalar has the shape [1]".into()) } else { Ok(shape) }
}

/// The features of a dataset in their order, which is the order of the columns.
///
/// ```
/// use so101_dataset::Features;
/// use so101_hal::CameraSpec;
/// let features = Features::so101(&[CameraSpec::new("main", 640, 480)]);
/// let names: Vec<_> = features.iter().map(|(name, _)| name).collect();
/// assert_eq!(names[..3], ["action", "observation.state", "observation.images.main"]);
/// assert_eq!(features.get("action").unwrap().shape, [6]);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Features {
    list: Vec<(String, Feature)>,
}

impl Features {
    /// No features.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What an SO-101 records: `action` and `observation.state` (float32, the six joints), one video a camera, and the
    /// five columns of every dataset.
    #[must_use]
    pub fn so101(cameras: &[CameraSpec]) -> Self {
        let mut features = Self::new();
        let joints = Feature::vector_f32(&so101_hal::joint::feature_names());
        features.insert("action", joints.clone());
        features.insert("observation.state", joints);
        for camera in cameras {
            features.insert(camera_feature(&camera.name), Feature::video(camera.size));
        }
        features.insert_defaults();
        features
    }

    /// Adds a feature at the end, or replaces the one of this name in its place.
    pub fn insert(&mut self, name: impl Into<String>, feature: Feature) {
        let name = name.into();
        match self.list.iter_mut().find(|(n, _)| *n == name) {
            Some((_, old)) => *old = feature,
            None => self.list.push((name, feature)),
        }
    }

    /// Adds the five [`DEFAULT_FEATURES`] at the end, where they are not there yet.
    pub fn insert_defaults(&mut self) {
        for name in DEFAULT_FEATURES {
            if self.get(name).is_none() {
                let dtype = if name == "timestamp" { DType::Float32 } else { DType::Int64 };
                self.insert(name, Feature::new(dtype, &[1]));
            }
        }
    }

    /// The feature of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Feature> {
        self.list.iter().find(|(n, _)| n == name).map(|(_, f)| f)
    }

    /// The feature of this name, to change.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Feature> {
        self.list.iter_mut().find(|(n, _)| n == name).map(|(_, f)| f)
    }

    /// All features, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Feature)> + Clone {
        self.list.iter().map(|(n, f)| (n.as_str(), f))
    }

    /// The features whose pictures are in mp4 files, in order.
    pub fn videos(&self) -> impl Iterator<Item = (&str, &Feature)> + Clone {
        self.iter().filter(|(_, f)| f.dtype == DType::Video)
    }

    /// The features that are columns of the data files: all but the videos, in order.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &Feature)> + Clone {
        self.iter().filter(|(_, f)| f.dtype != DType::Video)
    }

    /// Number of features.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Reads the `features` object of the info.json at `path`.
    ///
    /// # Errors
    /// [`Error::Key`] with the dotted path of what is wrong.
    pub(crate) fn parse(value: &Value, path: &Path) -> Result<Self> {
        let Value::Object(map) = value else {
            return Err(Error::key("features", "is not an object", path));
        };
        if map.len() > MAX_FEATURES {
            let problem = format!("holds {} features, at most {MAX_FEATURES} are accepted", map.len());
            return Err(Error::key("features", problem, path));
        }
        let mut features = Self::new();
        for (name, value) in map {
            if name.is_empty() || name.contains(['/', '\\', '\0']) || name == ".." || name == "." {
                let problem = format!("holds the name {name:?}: names may not be empty or contain a slash");
                return Err(Error::key("features", problem, path));
            }
            features.list.push((name.clone(), Feature::parse(name, value, path)?));
        }
        Ok(features)
    }

    /// The `features` object of info.json: default features last.
    pub(crate) fn to_value(&self) -> Value {
        let default = |name: &str| DEFAULT_FEATURES.contains(&name);
        let own = self.iter().filter(|(n, _)| !default(n));
        let ours = DEFAULT_FEATURES.iter().filter_map(|n| Some((*n, self.get(n)?)));
        Value::Object(own.chain(ours).map(|(n, f)| (n.to_owned(), f.to_value())).collect())
    }
}

/// The feature of the camera `name`: `observation.images.NAME`.
#[must_use]
pub fn camera_feature(name: &str) -> String {
    format!("observation.images.{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_dtype_keeps_its_name_and_unknown_ones_pass() {
        for (name, dtype) in &DTYPES {
            assert_eq!((DType::from_name(name), dtype.name()), (dtype.clone(), *name));
        }
        assert_eq!(DType::from_name("language").name(), "language");
    }

    #[test]
    fn the_so101_features_end_with_the_five_defaults() {
        let features = Features::so101(&[CameraSpec::new("main", 64, 48)]);
        let names: Vec<_> = features.iter().map(|(n, _)| n).collect();
        assert_eq!(names[3..], DEFAULT_FEATURES);
        let camera = features.get("observation.images.main").unwrap();
        assert_eq!(
            (camera.shape.as_slice(), camera.picture_size()),
            ([48, 64, 3].as_slice(), Some(FrameSize::new(64, 48)))
        );
        assert_eq!(features.columns().count(), features.len() - 1);
    }

    #[test]
    fn names_are_found_in_lists_and_in_objects() {
        let mut feature = Feature::vector_f32(&["a", "b"]);
        assert_eq!(feature.element_names(), Some(vec!["a", "b"]));
        feature.names = json!({"motors": ["c", "d"]});
        assert_eq!(feature.element_names(), Some(vec!["c", "d"]));
        feature.names = Value::Null;
        assert_eq!(feature.element_names(), None);
    }

    #[test]
    fn malformed_features_name_the_key() {
        let cases = [
            (json!([]), "key features is not an object"),
            (json!({"a/b": {}}), "key features holds the name \"a/b\""),
            (json!({"a": 3}), "key features.a is not an object"),
            (json!({"a": {"shape": [1]}}), "key features.a.dtype is missing"),
            (json!({"a": {"dtype": "bool"}}), "key features.a.shape is missing"),
            (json!({"a": {"dtype": 1, "shape": [1]}}), "key features.a.dtype is not a string"),
            (json!({"a": {"dtype": "bool", "shape": "x"}}), "key features.a.shape is not a list"),
            (json!({"a": {"dtype": "bool", "shape": []}}), "key features.a.shape is empty"),
            (json!({"a": {"dtype": "bool", "shape": [0]}}), "key features.a.shape holds 0"),
            (json!({"a": {"dtype": "bool", "shape": [-1]}}), "key features.a.shape holds -1"),
            (json!({"a": {"dtype": "bool", "shape": [1_000_000, 1_000_000]}}), "more than"),
            (json!({"a": {"dtype": "bool", "shape": [1, 1, 1, 1, 1, 1, 1, 1, 1]}}), "has 9 axes"),
            (
                json!({"a": {"dtype": "video", "shape": [1], "info": 3}}),
                "key features.a.info is not an object",
            ),
        ];
        for (value, expected) in cases {
            let message = Features::parse(&value, Path::new("info.json")).unwrap_err().to_string();
            assert!(message.contains(expected), "{value}: {message}");
        }
    }
}
