// Package view folds the updates of a session into the conversation that a user interface draws: messages, thoughts,
// tool calls, plans, modes, options, commands, usage and title. It stores nothing, sends nothing and, except for
// [Console], draws nothing and answers nothing, and it does not support version 2 of the protocol.
//
// [State.Update] takes the updates, of a turn as well as of a history that session/load replays. [State.Snapshot]
// returns the current conversation; a snapshot is immutable, costs the same however long the conversation is, and may
// be read while the State grows. [State.Watch] yields snapshots as the State changes, and [Snapshot.Changed] says which
// items to redraw, and [Snapshot.Versions] which of the other parts. [Console] is a user interface of plain lines.
//
//	sessions := &view.Sessions{}
//	conn, err := acp.Connect(ctx, transport, acp.ClientHandlers{SessionUpdate: sessions.Update}, nil)
//	session, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: dir})
//	state := sessions.Of(session.ID())
//	state.Opened(session)
//	res, err := view.Prompt(ctx, state, session, acp.TextBlock("fix the bug"))
//
// # What is not said by the protocol
//
// A cost that a usage_update leaves out stays, and null clears it. An update of a tool call that was not announced
// makes a tool call that is not Announced. A tool_call with the id of an earlier one continues that one in the same
// turn, or while that has not ended, and is otherwise a new one. Where null clears a value and absence does not, as for
// the title, a cleared value reads as null. A _meta that is null reads as absent.
package view
