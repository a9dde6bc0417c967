//! The body of an answer: whole, in pieces made as the client reads, or a stream without end.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http_body::{Frame, SizeHint};

use super::flight::Seat;
use super::traffic::Exchange;

/// The body of an answer.
pub enum Body {
    /// Everything at once.
    Whole(Option<Bytes>),
    /// Pieces that are made only when the client has read the ones before.
    Pieces(Box<dyn Iterator<Item = Bytes> + Send>),
    /// Pieces that come when something happens.
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
    /// Any of these, and what is given back when it has been read or nobody wants it any more.
    Held(Box<(Self, Held)>),
}

/// What an answer takes up until it has been read.
pub struct Held {
    /// A place among the requests in flight, or among the watches.
    seat: Option<Seat>,
    /// Its part in the connection's traffic.
    exchange: Option<Exchange>,
}

impl Body {
    /// No body at all.
    pub fn empty() -> Self {
        Self::Whole(None)
    }

    /// The same body, holding on to its seat and its exchange until it has been read.
    pub(super) fn holding(self, seat: Option<Seat>, exchange: Option<Exchange>) -> Self {
        // What is empty needs no reading.
        if matches!(self, Self::Whole(None)) || (seat.is_none() && exchange.is_none()) {
            return self;
        }
        // A watch is no answer that could be finished; it has bounds of its own.
        if let (false, Some(exchange)) = (matches!(self, Self::Stream(_)), &exchange) {
            exchange.step();
        }
        let held = Held { seat, exchange };
        Self::Held(Box::new((self, held)))
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Whole((!bytes.is_empty()).then_some(bytes))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match self.get_mut() {
            Self::Whole(bytes) => bytes.take(),
            Self::Pieces(pieces) => pieces.next(),
            Self::Stream(stream) => match stream.as_mut().poll_next(context) {
                Poll::Ready(piece) => piece,
                Poll::Pending => return Poll::Pending,
            },
            Self::Held(both) => {
                let (body, held) = &mut **both;
                if let (false, Some(exchange)) = (matches!(body, Self::Stream(_)), &held.exchange) {
                    exchange.step();
                }
                let polled = Pin::new(body).poll_frame(context);
                if let (Some(seat), Poll::Ready(Some(Ok(frame)))) = (&mut held.seat, &polled) {
                    seat.read(frame.data_ref().map_or(0, Bytes::len));
                }
                return polled;
            }
        };
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Held(both) => both.0.is_end_stream(),
            Self::Pieces(_) | Self::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            Self::Held(both) => both.0.size_hint(),
            Self::Pieces(_) | Self::Stream(_) => SizeHint::default(),
        }
    }
}
