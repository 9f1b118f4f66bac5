package roles

import (
	"encoding/json"
	"fmt"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/loader"
)

// item is a new copy of an entry's.
func (l *Loader) item(e loader.Entry) (rl.Item, error) {
	if e.Added == nil {
		item, err := l.source.Item(e.Index)
		if err != nil {
			return nil, err
		}
		item["group_id"], item["run_id"], item["index"] = e.GroupID(), e.Run, e.Index
		return item, nil
	}
	item, err := decodeItem(e.Added)
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]any{"group_id": e.GroupID(), "run_id": e.Run, "index": e.Index} {
		if _, ok := item[name]; !ok {
			item[name] = value
		}
	}
	return item, nil
}

// addedItem is an item as the codec writes it.
type addedItem struct {
	Data    []byte   `json:"data"`
	Buffers [][]byte `json:"buffers,omitempty"`
}

func encodeItem(item rl.Item) ([]byte, error) {
	data, buffers, err := codec.EncodeResult(codec.Msgpack, item)
	if err != nil {
		return nil, err
	}
	return json.Marshal(addedItem{Data: data, Buffers: buffers})
}

func decodeItem(text []byte) (rl.Item, error) {
	var added addedItem
	if err := json.Unmarshal(text, &added); err != nil {
		return nil, fmt.Errorf("read an added item: %w", err)
	}
	var item rl.Item
	if err := codec.DecodeResult(codec.Msgpack, added.Data, added.Buffers, codec.DefaultMemory, &item); err != nil {
		return nil, fmt.Errorf("read an added item: %w", err)
	}
	return item, nil
}
