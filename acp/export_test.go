package acp

// Shared is for the tests outside the package.
var Shared = shared
