import { isUtf8 } from 'node:buffer'
import { expect, test } from 'vitest'
import { fc, int64, text } from '../../helpers/expect/arbitraries.js'
import { countRounds } from '../../helpers/sandbox/rounds.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'
import {
  createLogTo,
  quickStore,
  serveStore,
  testToken,
} from '../../helpers/scripted-server/service.js'

/** What a way into a store says of a document: nothing, or what is wrong, without the parser's own sentence. */
type Verdict = string | undefined

test('create, POST and an import say the same of any document', async () => {
  const world = new Sandbox()
  const post = await poster()
  const compare = async (documents: Buffer[]) => {
    expect(await create(world, documents)).toEqual(await post(documents))
    // What is not UTF-8 ends an import from a pipe, and a tag that is null is none.
    const nullTag = /"tag"\s*:\s*null/
    const others = documents.filter((each) => isUtf8(each) && !nullTag.test(String(each)))
    expect(await importAll(world, others)).toEqual(await post(others))
  }
  const batch = fc.array(anyDocument(), { minLength: 100, maxLength: 100 })
  await fc.assert(fc.asyncProperty(batch, compare), { numRuns: countRounds(2) })
})

async function create(world: Sandbox, documents: Buffer[]): Promise<Verdict[]> {
  const verdicts: Verdict[] = []
  for (const stdin of documents) {
    const { code, err } = await world.run('create --dry-run --output json', { stdin })
    verdicts.push(code === 0 ? undefined : verdictOf(err.trimEnd().split('\n').at(-1)))
  }
  return verdicts
}

async function poster(): Promise<(documents: Buffer[]) => Promise<Verdict[]>> {
  const log = { ...createLogTo(async () => undefined), level: 'silent' } // a soak decides a million documents
  const { address } = await serveStore(quickStore, { log })
  const headers = { authorization: `Bearer ${testToken}`, 'content-type': 'application/json' }
  const postOne = async (body: Buffer) => {
    const response = await fetch(`${address}/plants`, { method: 'POST', headers, body })
    return response.ok ? undefined : verdictOf(await response.text())
  }
  return (documents) => Promise.all(documents.map(postOne))
}

/** Imports one line for each document, after a valid one. A plant whose id exists is valid. */
async function importAll(world: Sandbox, documents: Buffer[]): Promise<Verdict[]> {
  const first = `{"id":0,"name":"${'x'.repeat(1000)}"}` // a NUL near the start would be of a binary file
  const stdin = [first, ...documents, ''].join('\n')
  const { err } = await world.run('import --format ndjson --dry-run -o ndjson', { stdin })
  const lines = err.split('\n').filter((line) => line.includes('"line":'))
  const reasons = new Map(lines.map((line) => [JSON.parse(line).line, line]))
  return documents.map((_, index) => verdictOf(reasons.get(index + 2)))
}

function verdictOf(json?: string): Verdict {
  if (json === undefined) return undefined
  const { error, message }: { error: number; message: string } = JSON.parse(json)
  if (error === 409) return undefined
  return error === 400 ? 'malformed' : message.replace('Invalid plant: ', '')
}

/** A line that is not blank: valid, nearly valid or hostile. Only stdin may begin with a byte order mark. */
function anyDocument(): fc.Arbitrary<Buffer> {
  const plant = fc.tuple(int64(), quoted()).map(([id, name]) => `"id":${id},"name":${name}`)
  const member = fc.tuple(fc.oneof(...keys), fc.oneof(...values)).map((pair) => pair.join(':'))
  const members = fc.tuple(fc.option(plant, { freq: 3 }), fc.array(member, { maxLength: 3 }))
  const object = members.map(([first, others]) => `{${[first ?? [], others].flat().join()}}`)
  const deep = fc
    .nat(3000)
    .map((depth) => `{"id":1,"name":"","x":${'['.repeat(depth)}${']'.repeat(depth)}}`)
  const several = fc.tuple(object, object).map((pair) => pair.join(' '))
  const texts = fc.oneof(
    { weight: 10, arbitrary: object },
    { weight: 4, arbitrary: damaged(object, fc.constantFrom(...awkward)) },
    fc.oneof(deep, several, ...values),
  )
  const bytes = fc.oneof(
    { weight: 20, arbitrary: texts.map((json) => Buffer.from(json)) },
    damaged(object, fc.constantFrom('\xff', '\xc3', '\xed\xa0')).map((text) =>
      Buffer.from(text, 'latin1'),
    ),
  )
  return bytes.filter((document) => !/[\r\n]|^\s*$|^\ufeff/.test(document.toString()))
}

/** Texts with up to two characters less, and others in their place. */
function damaged(texts: fc.Arbitrary<string>, others: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(texts, fc.nat(), fc.nat(2), others).map(([text, at, deleted, other]) => {
    const from = at % (text.length + 1)
    return text.slice(0, from) + other + text.slice(from + deleted)
  })
}

const quoted = () => text().map((characters) => JSON.stringify(characters))
const words = (line: string) => fc.constantFrom(...line.split(' '))

const keys = [words('"id" "name" "tag"'), words('"\\u0069d" "nmae" "__proto__" "toString" "ID" ""')]

const values = [
  int64().map(String),
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
