// What is wrong with a value, before it is known which message it is in.

package schema

// MaxFindings bounds the findings of one message.
const MaxFindings = 20

// The requirements that most flaws break: that messages fit the agreed version, and that specified types have no members
// of one's own.
const (
	Agreed = "INI-6"
	Custom = "EXT-2"
)

// flaw is a finding before it is known which message it is about.
type flaw struct {
	rule       string
	pointer    string
	message    string
	definition string
}
