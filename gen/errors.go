package gen

import (
	"errors"
	"fmt"

	"github.com/acpgo/sdk/internal/gen/schema"
)

// Error is a fault of a schema, with its location. Unless the configuration is invalid, the errors of Generate are of
// this type or join errors of this type.
type Error = schema.Error

// Problems returns the errors that err joins, or err itself.
func Problems(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, err := range joined.Unwrap() {
		out = append(out, Problems(err)...)
	}
	return out
}

// In adds a location to each problem.
func In(where string, err error) error {
	if err == nil {
		return nil
	}
	var out []error
	for _, err := range Problems(err) {
		out = append(out, fmt.Errorf("%s: %w", where, err))
	}
	return errors.Join(out...)
}

// Stale reports that a schema does not use an override, and why. [Generate] returns one for each such override, wrapped
// in an [Error].
type Stale struct {
	Override
	Because string
}

// Error implements the error interface.
func (s *Stale) Error() string {
	return fmt.Sprintf("the override {%v, %q, %q} is not used: %s", s.Kind, s.Subject, s.Value, s.Because)
}

// Wanted reports that a schema needs an override, and suggests one. [Generate] returns one, wrapped in an [Error], for
// each name that is taken or cannot be derived, and for each unknown keyword.
type Wanted struct {
	Override
	Because error
}

// Error implements the error interface.
func (w *Wanted) Error() string {
	if w.Kind == Ignored {
		return fmt.Sprintf("%v; an override {%v, %q} leaves it out", w.Because, w.Kind, w.Subject)
	}
	return fmt.Sprintf("%v; an override {%v, %q} can name it", w.Because, w.Kind, w.Subject)
}

// Unwrap returns the problem without the suggested override.
func (w *Wanted) Unwrap() error { return w.Because }

// wanted returns the overrides that err suggests, and the other problems.
func wanted(err error) (lacks []Override, others error) {
	for _, problem := range Problems(err) {
		if w, ok := errors.AsType[*Wanted](problem); ok {
			lacks = append(lacks, w.Override)
		} else {
			others = errors.Join(others, problem)
		}
	}
	return lacks, others
}
