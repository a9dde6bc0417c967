//! The columns of collections that are always empty, for clients that ask for them as a table.

use super::column::{AGE, CREATED_AT, Column, NAME, boolean, integer, text as column, wide};
use super::workload::{CONTAINERS, IMAGES, SELECTOR};

pub(crate) const REPLICAS: &[Column] = &[
    NAME,
    integer("Desired", "How many pods there should be."),
    integer("Current", "How many pods there are."),
    integer("Ready", "How many pods are ready."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(crate) const DEPLOYMENT: &[Column] = &[
    NAME,
    column("Ready", "Ready pods, of all."),
    column("Up-to-date", "Pods with the newest template."),
    column("Available", "Pods that have been ready for long enough."),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(crate) const STATEFUL_SET: &[Column] = &[
    NAME,
    column("Ready", "Ready pods, of all."),
    AGE,
    CONTAINERS,
    IMAGES,
];

pub(crate) const VOLUME_ATTACHMENT: &[Column] = &[
    NAME,
    column("Attacher", "The driver that attaches it."),
    column("PV", "The volume to attach."),
    column("Node", "The node to attach it to."),
    boolean("Attached", "Whether it is attached."),
    AGE,
];

pub(crate) const STORAGE_CAPACITY: &[Column] = &[
    NAME,
    wide("StorageClassName", "The storage class."),
    wide("Capacity", "The available capacity."),
];

pub(crate) const RESOURCE_SLICE: &[Column] = &[
    NAME,
    column("Node", "The node its devices belong to."),
    column("Driver", "The driver that publishes it."),
    column("Pool", "The pool it is part of."),
    AGE,
];

pub(crate) const RESOURCE_CLAIM: &[Column] =
    &[NAME, column("State", "The state of the claim."), AGE];

pub(crate) const DEVICE_CLASS: &[Column] = &[NAME, AGE];

pub(crate) const OTHER: &[Column] = &[NAME, CREATED_AT];
