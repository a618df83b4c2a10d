//! The only `unsafe` code of this crate: libraries that speak C's language.

#![allow(unsafe_code, reason = "rav1d has the C interface of dav1d and no other")]

pub(crate) mod rav1d;
