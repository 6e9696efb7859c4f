"""The messages that a graph.pbtxt of OVMS is made of, as descriptors that protobuf's own parser works with.

Fields and numbers are those of google-ai-edge/mediapipe (mediapipe/framework/*.proto) and of
openvinotoolkit/model_server (src/**/*_calculator*.proto @7e4df0c7). Options that only name streams, threads or
profiles are listed because the parser refuses a field that it does not know, as OVMS does.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Final

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory

PACKAGE: Final = "mediapipe"
GRAPH: Final = f"{PACKAGE}.CalculatorGraphConfig"
LLM: Final = f"{PACKAGE}.LLMCalculatorOptions"

# label, type, name, number, [default]; an indented message or enum belongs to the one above it.
_SCHEMA: Final = """
message CalculatorOptions extensions
message MediaPipeOptions extensions
message PacketGeneratorOptions extensions
message SyncSetInputStreamHandlerOptions
  message SyncSet
    repeated string tag_index 1
  repeated SyncSetInputStreamHandlerOptions.SyncSet sync_set 1
message InputStreamHandlerConfig
  optional string input_stream_handler 1
  optional MediaPipeOptions options 3
message OutputStreamHandlerConfig
  optional string output_stream_handler 1
  repeated string input_side_packet 2
  optional MediaPipeOptions options 3
message PacketFactoryConfig
  optional string packet_factory 1
  optional string output_side_packet 2
  optional MediaPipeOptions options 3
  optional string external_output 1002
message PacketGeneratorConfig
  optional string packet_generator 1
  repeated string input_side_packet 2
  repeated string output_side_packet 3
  optional PacketGeneratorOptions options 4
  repeated string external_input 1002
  repeated string external_output 1003
message StatusHandlerConfig
  optional string status_handler 1
  repeated string input_side_packet 2
  optional MediaPipeOptions options 3
  repeated string external_input 1002
message ExecutorConfig
  optional string name 1
  optional string type 2
  optional MediaPipeOptions options 3
message InputStreamInfo
  optional string tag_index 1
  optional bool back_edge 2
message ProfilerConfig
  optional int64 histogram_interval_size_usec 1
  optional int64 num_histogram_intervals 2
  optional bool enable_input_output_latency 3
  optional bool enable_profiler 4
  optional bool enable_stream_latency 5
  optional bool use_packet_timestamp_for_added_packet 6
  optional int64 trace_log_capacity 7
  repeated int32 trace_event_types_disabled 8
  optional string trace_log_path 9
  optional int32 trace_log_count 10
  optional int64 trace_log_interval_usec 11
  optional int64 trace_log_margin_usec 12
  optional bool trace_log_duration_events 13
  optional int32 trace_log_interval_count 14
  optional bool trace_log_disabled 15
  optional bool trace_enabled 16
  optional bool trace_log_instant_events 17
  optional string calculator_filter 18
message CalculatorGraphConfig
  message Node
    optional string name 1
    optional string calculator 2
    repeated string input_stream 3
    repeated string output_stream 4
    repeated string input_side_packet 5
    repeated string output_side_packet 6
    optional CalculatorOptions options 7
    repeated Any node_options 8
    optional int32 source_layer 9
    optional int32 buffer_size_hint 10
    optional InputStreamHandlerConfig input_stream_handler 11
    optional OutputStreamHandlerConfig output_stream_handler 12
    repeated InputStreamInfo input_stream_info 13
    optional string executor 14
    optional ProfilerConfig profiler_config 15
    optional int32 max_in_flight 16
    repeated string option_value 17
    repeated string external_input 1005
  repeated CalculatorGraphConfig.Node node 1
  repeated PacketFactoryConfig packet_factory 6
  repeated PacketGeneratorConfig packet_generator 7
  optional int32 num_threads 8
  repeated StatusHandlerConfig status_handler 9
  repeated string input_stream 10
  optional int32 max_queue_size 11
  optional InputStreamHandlerConfig input_stream_handler 12
  optional OutputStreamHandlerConfig output_stream_handler 13
  repeated ExecutorConfig executor 14
  repeated string output_stream 15
  repeated string input_side_packet 16
  repeated string output_side_packet 17
  optional ProfilerConfig profiler_config 18
  optional string package 19
  optional string type 20
  optional bool report_deadlock 21
  optional MediaPipeOptions options 1001
  repeated Any graph_options 1002
message LLMCalculatorOptions
  message KVCrushConfig
    enum AnchorPointMode RANDOM ZEROS ONES MEAN ALTERNATING
    optional uint64 budget 2 0
    optional LLMCalculatorOptions.KVCrushConfig.AnchorPointMode anchor_point_mode 3 RANDOM
    optional uint64 rng_seed 4 0
  message CacheEvictionConfig
    enum AggregationMode SUM NORM_SUM
    optional LLMCalculatorOptions.CacheEvictionConfig.AggregationMode aggregation_mode 1 NORM_SUM
    required uint64 start_size 2
    required uint64 recent_size 3
    required uint64 max_cache_size 4
    optional bool apply_rotation 5 false
    optional uint64 snapkv_window_size 6 8
    optional LLMCalculatorOptions.KVCrushConfig kv_crush_config 7
  message SparseAttentionConfig
    enum SparseAttentionMode TRISHAPE XATTENTION
    optional LLMCalculatorOptions.SparseAttentionConfig.SparseAttentionMode mode 1 TRISHAPE
    optional uint64 num_last_dense_tokens_in_prefill 2
    optional uint64 num_retained_start_tokens_in_cache 3
    optional uint64 num_retained_recent_tokens_in_cache 4
    optional float xattention_threshold 5
    optional uint64 xattention_block_size 6
    optional uint64 xattention_stride 7
  enum PipelineType LM VLM LM_CB VLM_CB OMNI AUTO
  enum ChatTemplateMode MINJA JINJA
  required string models_path 1
  optional uint64 max_num_batched_tokens 2 256
  optional uint64 cache_size 3 0
  optional uint64 max_num_seqs 4 256
  optional bool dynamic_split_fuse 5 true
  optional string device 6
  optional string plugin_config 7
  optional uint32 best_of_limit 8 20
  optional uint32 max_tokens_limit 9
  optional bool enable_prefix_caching 10 false
  optional string draft_models_path 11
  optional string draft_device 12
  optional uint64 draft_max_num_batched_tokens 13
  optional uint64 draft_cache_size 14
  optional uint64 draft_block_size 15
  optional uint64 draft_max_num_seqs 16
  optional bool draft_dynamic_split_fuse 17
  optional bool draft_eagle3_mode 18 false
  optional LLMCalculatorOptions.PipelineType pipeline_type 19 AUTO
  optional LLMCalculatorOptions.CacheEvictionConfig cache_eviction_config 20
  optional string tool_parser 21
  optional string reasoning_parser 22
  optional bool enable_tool_guided_generation 23 false
  optional LLMCalculatorOptions.SparseAttentionConfig sparse_attention_config 24
  optional uint64 cache_interval_multiplier 25
  optional LLMCalculatorOptions.ChatTemplateMode chat_template_mode 26
  optional string generation_config_path 27
message EmbeddingsCalculatorOVOptions
  enum Pooling CLS LAST MEAN
  required string models_path 1
  optional bool normalize_embeddings 2 true
  optional string target_device 3
  optional string plugin_config 4
  optional EmbeddingsCalculatorOVOptions.Pooling pooling 5
  optional bool truncate 6 false
message RerankCalculatorOVOptions
  required string models_path 1
  optional uint64 max_allowed_chunks 2 10000
  optional uint64 max_position_embeddings 3
  optional string target_device 4
  optional string plugin_config 5
message S2tCalculatorOptions
  required string models_path 1
  optional string target_device 2
  optional string plugin_config 3
  optional bool enable_word_timestamps 4 false
message T2sCalculatorOptions
  message SpeakerEmbeddings
    required string name 1
    required string path 2
  required string models_path 1
  optional string target_device 2
  optional string plugin_config 3
  repeated T2sCalculatorOptions.SpeakerEmbeddings voices 4
  optional float speed_min 5 0.25
  optional float speed_max 6 4.0
message LoraAdapterEntry
  required string alias 1
  required string path 2
  optional float alpha 3 1.0
message CompositeLoraComponent
  required string adapter_alias 1
  optional float weight 2 1.0
message CompositeLoraAdapterEntry
  required string alias 1
  repeated CompositeLoraComponent components 2
message ImageGenCalculatorOptions
  required string models_path 1
  optional string device 2
  optional string plugin_config 3
  optional string max_resolution 4 4096x4096
  optional string default_resolution 5
  optional uint64 max_num_images_per_prompt 6 10
  optional uint64 default_num_inference_steps 7 50
  optional uint64 max_num_inference_steps 8 100
  optional string resolution 9
  optional int64 num_images_per_prompt 10
  optional float guidance_scale 11
  repeated LoraAdapterEntry lora_adapters 12
  repeated CompositeLoraAdapterEntry composite_lora_adapters 13
"""
# How many options of calculators there are to read: those whose name ends so.
CALCULATORS: Final = tuple(re.findall(r"^message (\w+Calculator\w*Options)$", _SCHEMA, re.MULTILINE))
_SYNC_SET: Final = 104743844


@functools.cache
def pool() -> descriptor_pool.DescriptorPool:
    """Build the descriptors once; a pool of its own collides with nobody else's messages of these names."""
    field: Any = descriptor_pb2.FieldDescriptorProto
    made = descriptor_pool.DescriptorPool()
    made.AddSerializedFile(any_pb2.DESCRIPTOR.serialized_pb)
    file = descriptor_pb2.FileDescriptorProto(
        name="graph.proto", package=PACKAGE, syntax="proto2", dependency=[any_pb2.DESCRIPTOR.name]
    )
    enums = {match.group(1) for match in re.finditer(r"^ *enum (\w+)", _SCHEMA, re.MULTILINE)}
    open_messages: list[Any] = []
    for line in filter(None, _SCHEMA.split("\n")):
        depth, words = (len(line) - len(line.lstrip())) // 2, line.split()
        del open_messages[depth:]
        if words[0] == "message":
            message: Any = open_messages[-1].nested_type.add() if open_messages else file.message_type.add()
            message.name = words[1]
            if words[2:]:
                message.extension_range.add(start=1000, end=2**29)
            open_messages.append(message)
        elif words[0] == "enum":
            enum = open_messages[-1].enum_type.add(name=words[1])
            for value, member in enumerate(words[2:]):
                enum.value.add(name=member, number=value)
        else:
            label, kind, name, number, *default = words
            added = open_messages[-1].field.add(name=name, number=int(number), label=getattr(field, f"LABEL_{label.upper()}"))
            if kind[0].islower():
                added.type = getattr(field, f"TYPE_{kind.upper()}")
            else:
                added.type = field.TYPE_ENUM if kind.rsplit(".", 1)[-1] in enums else field.TYPE_MESSAGE
                added.type_name = ".google.protobuf.Any" if kind == "Any" else f".{PACKAGE}.{kind}"
            if default:
                added.default_value = default[0]
    sync_set = next(message for message in file.message_type if message.name == "SyncSetInputStreamHandlerOptions")
    sync_set.extension.add(
        name="ext",
        number=_SYNC_SET,
        label=field.LABEL_OPTIONAL,
        type=field.TYPE_MESSAGE,
        type_name=f".{PACKAGE}.SyncSetInputStreamHandlerOptions",
        extendee=f".{PACKAGE}.MediaPipeOptions",
    )
    made.Add(file)
    return made


def message_class(name: str) -> Any:
    """Give the class of a message.

    Raises:
        KeyError: there is no such message.
    """
    return message_factory.GetMessageClass(pool().FindMessageTypeByName(name))
