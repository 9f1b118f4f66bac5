// Package compute serves the API of Compute Engine over REST on top of the model in
// package cloud: instances, managed instance groups with resize requests, instance
// templates, resource policies, operations and catalogs; and what Service Usage and
// Cloud Resource Manager state of a project. Errors have the codes, texts and
// details of the service.
//
// It leaves out what fray and its tests do not call. What the model does not know,
// such as templates, policies and managed groups without machines, is kept here;
// when a machine comes up, fails or is preempted is the model's.
//
// Start with [New]. Layers, each of which knows those before it only: resources,
// requests and errors; lists; operations, catalogs and projects; instances;
// templates; groups; the server.
package compute
