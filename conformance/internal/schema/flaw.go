package schema

// MaxFindings bounds the findings of one message.
const MaxFindings = 20

// The requirements that most flaws break: messages fit the agreed version, and specified types have no custom members.
const (
	Agreed = "INI-6"
	Custom = "EXT-2"
)

// flaw is the part of a finding that does not depend on the message.
type flaw struct {
	rule       string
	pointer    string
	message    string
	definition string
}
