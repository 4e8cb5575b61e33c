package registry

var Unpack = unpack
