package acp

// This file owns the comparison of the package with the schema that it is generated from: nothing of the
// protocol is missing.

import "testing"

func TestEveryDefinitionIsAType(t *testing.T) { generated().HasDefinitions(t, 150) }

func TestEveryMethodIsThere(t *testing.T) { generated().HasMethods(t, 20) }
