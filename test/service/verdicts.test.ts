import { isUtf8 } from 'node:buffer'
import { expect, test } from 'vitest'
import { foldLabel } from '../../src/formats/names.js'
import { fieldNames } from '../../src/plant/fields.js'
import { fc, generateInt64, generateText } from '../helpers/expect/arbitraries.js'
import { scaleRounds } from '../helpers/sandbox/rounds.js'
import { Sandbox } from '../helpers/sandbox/sandbox.js'
import {
  createLogTo,
  quickStore,
  serveStore,
  testToken,
} from '../helpers/scripted-server/service.js'

/** What is wrong with a document, without the sentence of the JSON parser; undefined if it is valid. */
type Verdict = string | undefined

test('create, a POST and an import give the same reason for any invalid document', async () => {
  const sandbox = new Sandbox()
  const post = await startPoster()
  const compare = async (documents: Buffer[]) => {
    expect(await create(sandbox, documents)).toEqual(await post(documents))
    // A line that is not UTF-8 ends an import from a pipe.
    const comparable = documents.filter(
      (document) => isUtf8(document) && !readsOtherwise(String(document)),
    )
    expect(await importAll(sandbox, comparable)).toEqual(await post(comparable))
  }
  const batch = fc.array(anyDocument(), { minLength: 100, maxLength: 100 })
  await fc.assert(fc.asyncProperty(batch, compare), { numRuns: scaleRounds(2) })
})

/** Whether an import reads the document in another way: null as no value, or `ID` as the key `id`. */
function readsOtherwise(document: string): boolean {
  const keys = Array.from(document.matchAll(/"((?:[^"\\]|\\.)*)"\s*:/g), ([, key = '']) => key)
  const isSimilar = (key: string) => /^(?:id|name|tag)$/.test(foldLabel(key)) && !isFieldName(key)
  return /"(?:name|tag)"\s*:\s*null/.test(document) || keys.some(isSimilar)
}

function isFieldName(key: string): boolean {
  return fieldNames.some((name) => name === key)
}

async function create(sandbox: Sandbox, documents: Buffer[]): Promise<Verdict[]> {
  const verdicts: Verdict[] = []
  for (const stdin of documents) {
    const { code, err } = await sandbox.run('create --dry-run --output json', { stdin })
    verdicts.push(code === 0 ? undefined : parseVerdict(err.trimEnd().split('\n').at(-1)))
  }
  return verdicts
}

async function startPoster(): Promise<(documents: Buffer[]) => Promise<Verdict[]>> {
  const log = { ...createLogTo(async () => undefined), level: 'silent' }
  const { address } = await serveStore(quickStore, { log })
  const headers = { authorization: `Bearer ${testToken}`, 'content-type': 'application/json' }
  const postOne = async (body: Buffer) => {
    const response = await fetch(`${address}/plants`, { method: 'POST', headers, body })
    return response.ok ? undefined : parseVerdict(await response.text())
  }
  return (documents) => Promise.all(documents.map(postOne))
}

/** Imports one line for each document, after a valid one. A plant whose id exists is valid. */
async function importAll(sandbox: Sandbox, documents: Buffer[]): Promise<Verdict[]> {
  // A NUL near the start of a file means that the file is binary, so the first line is long.
  const first = `{"id":0,"name":"${'x'.repeat(1000)}"}`
  const stdin = [first, ...documents, ''].join('\n')
  const { err } = await sandbox.run('import --format ndjson --dry-run -o ndjson', { stdin })
  const lines = err.split('\n').filter((line) => line.includes('"line":'))
  const reasons = new Map(lines.map((line) => [JSON.parse(line).line, line]))
  return documents.map((_, index) => parseVerdict(reasons.get(index + 2)))
}

function parseVerdict(json?: string): Verdict {
  if (json === undefined) return undefined
  const { error, message }: { error: number; message: string } = JSON.parse(json)
  if (error === 409) return undefined
  // Where a field is missing, the command line also names the keys that are no fields.
  return error === 400
    ? 'malformed'
    : message.replace('Invalid plant: ', '').replace(/; unknown: ".*$/s, '')
}

/** A line that is not blank: valid, nearly valid or hostile. Only stdin may begin with a byte order mark. */
function anyDocument(): fc.Arbitrary<Buffer> {
  const plant = fc.tuple(generateInt64(), quoted()).map(([id, name]) => `"id":${id},"name":${name}`)
  const member = fc.tuple(fc.oneof(...keys), fc.oneof(...values)).map((pair) => pair.join(':'))
  const members = fc.tuple(fc.option(plant, { freq: 3 }), fc.array(member, { maxLength: 3 }))
  const object = members.map(([first, others]) => `{${[first ?? [], others].flat().join()}}`)
  const deep = fc
    .nat(3000)
    .map((depth) => `{"id":1,"name":"","x":${'['.repeat(depth)}${']'.repeat(depth)}}`)
  const several = fc.tuple(object, object).map((pair) => pair.join(' '))
  const texts = fc.oneof(
    { weight: 10, arbitrary: object },
    { weight: 4, arbitrary: damage(object, fc.constantFrom(...awkward)) },
    fc.oneof(deep, several, ...values),
  )
  const bytes = fc.oneof(
    { weight: 20, arbitrary: texts.map((json) => Buffer.from(json)) },
    damage(object, fc.constantFrom('\xff', '\xc3', '\xed\xa0')).map((text) =>
      Buffer.from(text, 'latin1'),
    ),
  )
  return bytes.filter((document) => !/[\r\n]|^\s*$|^\ufeff/.test(document.toString()))
}

/** Replaces up to two characters of a text by others. */
function damage(
  texts: fc.Arbitrary<string>,
  replacements: fc.Arbitrary<string>,
): fc.Arbitrary<string> {
  return fc
    .tuple(texts, fc.nat(), fc.nat(2), replacements)
    .map(([text, seed, deletedCount, replacement]) => {
      const from = seed % (text.length + 1)
      return text.slice(0, from) + replacement + text.slice(from + deletedCount)
    })
}

const quoted = () => generateText().map((characters) => JSON.stringify(characters))
const words = (line: string) => fc.constantFrom(...line.split(' '))

const keys = [words('"id" "name" "tag"'), words('"\\u0069d" "nmae" "__proto__" "toString" "ID" ""')]

const values = [
  generateInt64().map(String),
  words('0 -0 007 +1 1.0 1.5 1e3 1E+18 1e-3 .5 - 1e 0x10 NaN'),
  words('9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809'),
  words('1.0000000000000000001 1e999999999 0e999999999 1e-999999999 10000000000000000000e-1'),
  quoted(),
  words(
    '"1" "\\ud800" "\\udf31\\ud83c" "\\ud83c\\udf31" "\\u0000" "a\\u0000b" "\u0001" "\t" "\\x" "',
  ),
  words('null null true false [] {} [1,{"id":2}] {"id":1,"name":"a"} nul True '),
]

const awkward = ['', ' ', '//', ...'\ufeff\u2028\u00a0\0\u001b"\\{}[,:-0\u{1f331}']
