package mark

// Names of the instance metadata that fray writes and hosts read. Every reader of a
// machine may read their values, so none of them is secret.
const (
	KeyStartupScript   = "startup-script"
	KeySpec            = "fray-spec" // the slice's schema.SliceSpec as JSON, written by the provider
	KeyStore           = "fray-store"
	KeySlice           = "fray-slice"
	KeyWorkspace       = "fray-workspace"
	KeyAgentSum        = "fray-agent-sha256"
	KeyAgentObject     = "fray-agent-object" // "b/BUCKET/o/NAME", escaped, in the JSON API
	KeyAgentVersion    = "fray-agent-version"
	KeyBootUpload      = "fray-boot-upload"  // "b/BUCKET/o?…&name=PREFIX", escaped: an upload in the JSON API, to be completed by a machine
	KeyDriverImage     = "fray-driver-image" // of machines with GPUs: the boot image that is to have NVIDIA's driver
	KeyGuestAttributes = "enable-guest-attributes"
)
