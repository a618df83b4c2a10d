//! A safe decoder over rav1d, which has dav1d's C interface: one context, data in, pictures out.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use rav1d::include::dav1d::data::Dav1dData;
use rav1d::include::dav1d::dav1d::{Dav1dContext, Dav1dSettings};
use rav1d::include::dav1d::headers::DAV1D_PIXEL_LAYOUT_I420;
use rav1d::include::dav1d::picture::Dav1dPicture;
use rav1d::src::lib::{
    dav1d_close, dav1d_data_create, dav1d_data_unref, dav1d_default_settings, dav1d_flush, dav1d_get_picture,
    dav1d_open, dav1d_picture_unref, dav1d_send_data,
};

/// `EAGAIN` of errno.h, the same number on Linux; macOS has 35 and Windows 11.
const EAGAIN: i32 = if cfg!(target_vendor = "apple") { 35 } else { 11 };

/// A decoder that uses one thread and keeps no picture back.
pub(crate) struct Av1Decoder {
    context: Option<Dav1dContext>,
}

// SAFETY: dav1d's context may be used from any thread, by one at a time: `&mut self` sees to that.
unsafe impl Send for Av1Decoder {}

/// The planes of one decoded picture, borrowed from the decoder.
pub(crate) struct Av1Planes<'a> {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) y: &'a [u8],
    pub(crate) u: &'a [u8],
    pub(crate) v: &'a [u8],
    /// Bytes from row to row of luma and of chroma.
    pub(crate) strides: (u32, u32),
}

impl Av1Decoder {
    /// A decoder that refuses pictures of more than `max_pixels`.
    pub(crate) fn new(max_pixels: u32) -> Result<Self, String> {
        let mut settings = MaybeUninit::<Dav1dSettings>::uninit();
        // SAFETY: the pointer is valid for writes; the call initialises all of the struct.
        let mut settings = unsafe {
            dav1d_default_settings(NonNull::from(&mut settings).cast());
            settings.assume_init()
        };
        settings.n_threads = 1;
        settings.max_frame_delay = 1;
        settings.frame_size_limit = max_pixels;
        let mut context: Option<Dav1dContext> = None;
        // SAFETY: both pointers are to live values of their types, and are not kept.
        let result =
            unsafe { dav1d_open(Some(NonNull::from(&mut context)), Some(NonNull::from(&mut settings))) };
        match (result.0, context) {
            (0, Some(_)) => Ok(Self { context }),
            (code, _) => Err(format!("the AV1 decoder could not be set up: code {code}")),
        }
    }

    /// Decodes one sample and shows each picture that comes out.
    pub(crate) fn decode(
        &mut self,
        sample: &[u8],
        show: &mut dyn FnMut(&Av1Planes<'_>),
    ) -> Result<(), String> {
        if sample.is_empty() {
            return Err("it is empty".to_owned());
        }
        let mut data = Dav1dData::default();
        // SAFETY: `data` is a live value; the call returns null or a buffer of `sample.len()` bytes that it owns.
        let buffer = unsafe { dav1d_data_create(Some(NonNull::from(&mut data)), sample.len()) };
        if buffer.is_null() {
            return Err(format!("no memory for a sample of {} bytes", sample.len()));
        }
        // SAFETY: the buffer has that length, is not yet shared and does not overlap the slice.
        unsafe { core::ptr::copy_nonoverlapping(sample.as_ptr(), buffer, sample.len()) };
        let result = self.feed(&mut data, show);
        // SAFETY: `data` is a live value that was set up above; what has been consumed is empty.
        unsafe { dav1d_data_unref(Some(NonNull::from(&mut data))) };
        result
    }

    fn feed(&mut self, data: &mut Dav1dData, show: &mut dyn FnMut(&Av1Planes<'_>)) -> Result<(), String> {
        // Each round takes bytes, takes a picture out, or ends.
        loop {
            let before = data.sz;
            if before > 0 {
                // SAFETY: the context is open until `self` is dropped, and `data` is a live value.
                let code = unsafe { dav1d_send_data(self.context, Some(NonNull::from(&mut *data))) }.0;
                if code != 0 && code != -EAGAIN {
                    return Err(format!("the AV1 decoder refuses it: code {code}"));
                }
            }
            let shown = self.take_picture(show)?;
            if data.sz == 0 && !shown {
                return Ok(());
            }
            if data.sz == before && !shown {
                return Err("the AV1 decoder neither takes it nor gives a picture".to_owned());
            }
        }
    }

    /// Shows the next picture that is ready, and whether there was one.
    fn take_picture(&mut self, show: &mut dyn FnMut(&Av1Planes<'_>)) -> Result<bool, String> {
        let mut picture = Dav1dPicture::default();
        // SAFETY: the context is open, and `picture` is a live, empty value.
        let code = unsafe { dav1d_get_picture(self.context, Some(NonNull::from(&mut picture))) }.0;
        if code == -EAGAIN {
            return Ok(false);
        }
        if code != 0 {
            return Err(format!("the AV1 decoder fails: code {code}"));
        }
        let result = planes(&picture).map(|planes| show(&planes));
        // SAFETY: the picture came from the decoder and is not used afterwards; the planes above have ended.
        unsafe { dav1d_picture_unref(Some(NonNull::from(&mut picture))) };
        result.map(|()| true)
    }

    /// Forgets what came before, as for a jump to a key frame.
    pub(crate) fn flush(&mut self) {
        if let Some(context) = self.context {
            // SAFETY: the context is open until `self` is dropped.
            unsafe { dav1d_flush(context) };
        }
    }
}

impl Drop for Av1Decoder {
    fn drop(&mut self) {
        // SAFETY: the context was opened by `new` and is closed once; the call takes it out of the option.
        unsafe { dav1d_close(Some(NonNull::from(&mut self.context))) };
    }
}

/// The planes of a picture of 8-bit 4:2:0.
fn planes(picture: &Dav1dPicture) -> Result<Av1Planes<'_>, String> {
    let p = &picture.p;
    if p.bpc != 8 || p.layout != DAV1D_PIXEL_LAYOUT_I420 {
        return Err(format!("a picture of {} bits in layout {}, only 8-bit 4:2:0 is read", p.bpc, p.layout));
    }
    let size = u32::try_from(p.w).ok().zip(u32::try_from(p.h).ok()).filter(|(w, h)| *w > 0 && *h > 0);
    let (width, height) = size.ok_or_else(|| format!("a picture of {}x{}", p.w, p.h))?;
    let [y_stride, uv_stride] = picture.stride;
    let rows = |rows: u32, width: u32, stride: isize| {
        let stride = usize::try_from(stride).ok().filter(|s| *s >= width as usize)?;
        // The last row may end with its picture.
        Some((rows as usize - 1) * stride + width as usize)
    };
    let (half_width, half_height) = (width.div_ceil(2), height.div_ceil(2));
    let lengths = rows(height, width, y_stride).zip(rows(half_height, half_width, uv_stride));
    let [Some(y), Some(u), Some(v)] = picture.data else { return Err("a picture without planes".to_owned()) };
    let (y_len, uv_len) = lengths.ok_or("a picture with strides below its width")?;
    // SAFETY: dav1d's planes have the strides and the size that the picture states (checked above to be positive), and
    // stay where they are until the picture is given back, which the lifetime forbids while these live.
    let [y, u, v] = unsafe {
        [
            core::slice::from_raw_parts(y.cast::<u8>().as_ptr(), y_len),
            core::slice::from_raw_parts(u.cast::<u8>().as_ptr(), uv_len),
            core::slice::from_raw_parts(v.cast::<u8>().as_ptr(), uv_len),
        ]
    };
    let stride = |s: isize| u32::try_from(s).map_err(|e| e.to_string());
    Ok(Av1Planes { width, height, y, u, v, strides: (stride(y_stride)?, stride(uv_stride)?) })
}
