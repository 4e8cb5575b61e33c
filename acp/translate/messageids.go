package translate

import "strconv"

// begin begins a message without id.
func (sess *session) begin(kind string) {
	if sess.kind = kind; kind == "user_message_chunk" {
		sess.current = sess.addUser("")
	} else {
		sess.current = sess.invent("message")
	}
}

// endMessage ends the message that chunks without ids belong to.
func (sess *session) endMessage() { sess.kind = "" }

// restart begins to count messages again, at the beginning of a replay.
func (sess *session) restart() {
	sess.count, sess.kind, sess.user, sess.agentID = 0, "", 0, ""
	if sess.reset {
		sess.users = nil
	}
}

// maxUsers is how many messages of the user keep their ids in a replay.
const maxUsers = 1000

// addUser returns the id of the next message of the user: the one that it had before, in a replay; otherwise the
// agent's, or a new one.
func (sess *session) addUser(id string) string {
	if sess.replay.on && !sess.reset && sess.user < len(sess.users) {
		sess.user++
		return sess.users[sess.user-1]
	}
	if id == "" {
		id = sess.invent("user")
	}
	if sess.reset = sess.reset || len(sess.users) >= maxUsers; !sess.reset {
		sess.users = append(sess.users, id)
		sess.user = len(sess.users)
	}
	return id
}

// lastUser returns the id of the last message of the user.
func (sess *session) lastUser() string {
	if n := len(sess.users); n > 0 {
		return sess.users[n-1]
	}
	return sess.invent("user")
}

// invent returns an id for a message without one. If the beginning of the session's history is unknown, it differs from
// all ids of earlier connections.
func (sess *session) invent(kind string) string {
	n := len(sess.users) + 1
	if kind != "user" || sess.reset {
		sess.count++
		n = sess.count
	}
	id := "translated-" + kind + "-" + strconv.Itoa(n)
	if sess.reset {
		id += "-" + sess.unique
	}
	return id
}
