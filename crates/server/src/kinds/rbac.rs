//! The rules of Role, RoleBinding, ClusterRole, ClusterRoleBinding.

use super::Strategy;

/// The rules of Role.
#[derive(Debug)]
pub struct Role;

impl Strategy for Role {}

/// The rules of RoleBinding.
#[derive(Debug)]
pub struct RoleBinding;

impl Strategy for RoleBinding {}

/// The rules of ClusterRole.
#[derive(Debug)]
pub struct ClusterRole;

impl Strategy for ClusterRole {}

/// The rules of ClusterRoleBinding.
#[derive(Debug)]
pub struct ClusterRoleBinding;

impl Strategy for ClusterRoleBinding {}
