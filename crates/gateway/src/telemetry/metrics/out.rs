//! Decides how a series is written: its head once, then each value with its labels.
//! It exists so that name, kind, labels and help always come from the one list of series.
//! It refuses labels that the list does not have.

use std::fmt;

use prometheus_client::{
    encoding::{DescriptorEncoder, MetricEncoder},
    metrics::{MetricType, exemplar::Exemplar},
};

use crate::telemetry::{
    ages::AgeCounts,
    series::{Kind, Series},
};

type Labels<'v> = Vec<&'v str>;

/// Writes series after series.
pub(in crate::telemetry) struct Out<'e>(DescriptorEncoder<'e>);

impl<'e> Out<'e> {
    pub(super) const fn new(encoder: DescriptorEncoder<'e>) -> Self {
        Self(encoder)
    }

    /// Writes a counter or a gauge of whole numbers.
    pub(in crate::telemetry) fn write<'v>(
        &mut self,
        series: &Series,
        values: impl Iterator<Item = (Labels<'v>, u64)>,
    ) -> fmt::Result {
        self.each(series, values, |mut one, value| match series.kind {
            Kind::Counter => one.encode_counter(&value, NO_EXEMPLAR),
            Kind::Gauge | Kind::Histogram => one.encode_gauge(&value),
        })
    }

    /// Writes a counter or a gauge of seconds or shares.
    pub(in crate::telemetry) fn write_real<'v>(
        &mut self,
        series: &Series,
        values: impl Iterator<Item = (Labels<'v>, f64)>,
    ) -> fmt::Result {
        self.each(series, values, |mut one, value| match series.kind {
            Kind::Counter => one.encode_counter(&value, NO_EXEMPLAR),
            Kind::Gauge | Kind::Histogram => one.encode_gauge(&value),
        })
    }

    /// Writes a histogram.
    pub(super) fn write_ages<'v>(
        &mut self,
        series: &Series,
        values: impl Iterator<Item = (Labels<'v>, AgeCounts)>,
    ) -> fmt::Result {
        self.each(series, values, |mut one, ages| {
            let count = ages.buckets.iter().map(|(_, count)| count).sum();
            // The encoder adds the buckets up itself, and the one without a bound.
            one.encode_histogram::<Vec<(&str, &str)>>(ages.sum, count, &ages.buckets, None)
        })
    }

    fn each<'v, V>(
        &mut self,
        series: &Series,
        values: impl Iterator<Item = (Labels<'v>, V)>,
        encode: impl Fn(MetricEncoder<'_>, V) -> fmt::Result,
    ) -> fmt::Result {
        let kind = match series.kind {
            Kind::Counter => MetricType::Counter,
            Kind::Gauge => MetricType::Gauge,
            Kind::Histogram => MetricType::Histogram,
        };
        let mut encoder = self.0.encode_descriptor(series.name, series.help, None, kind)?;
        for (labels, value) in values {
            let labels: Vec<(&str, &str)> = series.labels.iter().copied().zip(labels).collect();
            encode(encoder.encode_family(&labels)?, value)?;
        }
        Ok(())
    }
}

const NO_EXEMPLAR: Option<&Exemplar<Vec<(&'static str, &'static str)>, f64>> = None;
