// Package view folds the updates of a session into the conversation that a user interface draws: messages, thoughts,
// tool calls, plans, modes, options, commands, usage and title. It does not store or send anything and, except for
// [Console], does not draw or answer anything. It does not support version 2 of the protocol.
//
// [State.Update] takes updates, both those of a turn and those of a history that session/load replays. [State.Snapshot]
// returns the current conversation; a snapshot is immutable, costs the same however long the conversation is, and may
// be read while the State grows. [State.Watch] yields snapshots as the State changes, [Snapshot.Changed] tells which
// items to redraw, and [Snapshot.Versions] which other parts. [Console] is a user interface of plain lines.
//
//	sessions := &view.Sessions{}
//	conn, err := acp.Connect(ctx, transport, acp.ClientHandlers{SessionUpdate: sessions.Update}, nil)
//	session, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: dir})
//	state := sessions.Of(session.ID())
//	state.SetSession(session)
//	res, err := view.Prompt(ctx, state, session, acp.TextBlock("fix the bug"))
//
// # What is not said by the protocol
//
// If a usage_update leaves out the cost, the previous cost stays; null clears it. An update of a tool call that was not
// announced makes a tool call that is not Announced. A tool_call with the id of an earlier one continues it if both are
// in the same turn or the earlier one has not ended; otherwise it is a new one. Where null clears a value and absence
// does not, as for the title, a cleared value reads as null. A null _meta reads as absent.
package view
