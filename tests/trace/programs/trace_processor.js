// Asks Perfetto's trace processor: node trace_processor.js FOLDER TRACE QUERY... prints one JSON list of rows for each query.
//
// FOLDER holds engine_bundle.js and trace_processor.wasm as Perfetto builds them for its page; here they run in Node, and requests are the messages of
// protos/perfetto/trace_processor/trace_processor.proto. Nothing of this project interprets the trace.
'use strict';
const fs = require('fs');
const path = require('path');

const [folder, trace, ...queries] = process.argv.slice(2);
const APPEND = 1, FINALIZE = 2, QUERY = 3; // TraceProcessorRpc.TraceProcessorMethod
const CHUNK = 1 << 20;

// --- protocol buffers, as far as these messages need them

function varint(number) {
  const bytes = [];
  for (; number > 127; number = Math.floor(number / 128)) bytes.push((number % 128) | 128);
  return Buffer.from([...bytes, number]);
}

function numberField(field, number) {
  return Buffer.concat([varint(field * 8), varint(number)]);
}

function bytesField(field, bytes) {
  return Buffer.concat([varint(field * 8 + 2), varint(bytes.length), bytes]);
}

function readVarint(bytes, at) {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n) {
    const byte = bytes[at++];
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return [BigInt.asIntN(64, value), at];
  }
}

function* fields(bytes) {
  for (let at = 0; at < bytes.length; ) {
    let key, value;
    [key, at] = readVarint(bytes, at);
    const kind = Number(key & 7n);
    if (kind === 0) [value, at] = readVarint(bytes, at);
    else if (kind === 1) [value, at] = [bytes.readDoubleLE(at), at + 8];
    else if (kind === 2) {
      [value, at] = readVarint(bytes, at);
      [value, at] = [bytes.subarray(at, at + Number(value)), at + Number(value)];
    } else throw new Error(`wire type ${kind}`);
    yield [Number(key >> 3n), value];
  }
}

function packed(bytes) {
  const found = [];
  for (let at = 0, value; at < bytes.length; ) {
    [value, at] = readVarint(bytes, at);
    found.push(Number(value));
  }
  return found;
}

// --- the results of a query

class Rows {
  constructor() {
    this.columns = [];
    this.rows = [];
    this.row = [];
  }

  add(result) {
    for (const [field, value] of fields(result)) {
      if (field === 1) this.columns.push(value.toString());
      if (field === 2 && value.length) throw new Error(value.toString());
      if (field === 3) this.batch(value);
    }
  }

  batch(bytes) {
    let cells = [], numbers = [], texts = [], floats = [];
    for (const [field, value] of fields(bytes)) {
      if (field === 1) cells = packed(value);
      if (field === 2) numbers = packed(value);
      if (field === 3) floats = Array.from({ length: value.length / 8 }, (_, place) => value.readDoubleLE(8 * place));
      if (field === 5) texts = value.toString().split('\0');
    }
    for (const cell of cells) {
      this.row.push(cell === 2 ? numbers.shift() : cell === 3 ? floats.shift() : cell === 4 ? texts.shift() : null);
      if (this.row.length === this.columns.length) this.rows.push(this.row.splice(0));
    }
  }
}

// --- the engine

async function engine() {
  process.chdir(folder);
  const code = fs.readFileSync('engine_bundle.js', 'utf8').replace('const wasmBridge = ', 'const wasmBridge = self.bridge = ');
  const self = {};
  new Function('self', 'require', '__filename', '__dirname', code)(self, require, path.resolve('engine_bundle.js'), path.resolve('.'));
  await self.bridge.whenInitialized;
  const replies = [];
  const port = { postMessage: (bytes) => replies.push(Buffer.from(bytes)) };
  self.onmessage({ data: { enginePort: port } });
  let sequence = 0;
  return (method, extra) => {
    const request = Buffer.concat([numberField(1, sequence++), numberField(2, method), extra]);
    port.onmessage({ data: new Uint8Array(bytesField(1, request)) });
    const messages = [...fields(Buffer.concat(replies.splice(0)))].map(([, message]) => [...fields(message)]);
    for (const message of messages) for (const [field, value] of message) if (field === 5) throw new Error(value.toString());
    return messages;
  };
}

async function main() {
  const bytes = fs.readFileSync(trace);
  const ask = await engine();
  for (let at = 0; at < bytes.length; at += CHUNK) {
    for (const message of ask(APPEND, bytesField(101, bytes.subarray(at, at + CHUNK)))) {
      for (const [field, value] of message) if (field === 201) for (const [of, text] of fields(value)) if (of === 2) throw new Error(text.toString());
    }
  }
  ask(FINALIZE, Buffer.alloc(0));
  for (const query of queries) {
    const rows = new Rows();
    for (const message of ask(QUERY, bytesField(103, bytesField(1, Buffer.from(query))))) {
      for (const [field, value] of message) if (field === 203) rows.add(value);
    }
    console.log(JSON.stringify(rows.rows));
  }
}

main().catch((error) => {
  console.error(error.stack);
  process.exit(1);
});
