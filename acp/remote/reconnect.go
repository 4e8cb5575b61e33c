// This file owns keeping a client's session alive over a lost connection.

package remote
