import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Result, type RunOptions, runPlants } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'

test.each([
  ['0', '0'],
  ['-0', '0'],
  ['0.000', '0'],
  ['-0.0e5', '0'],
  ['0e999999999', '0'],
  ['0.0000e-99999999999999999999', '0'],
  ['-1', '-1'],
  ['1.0', '1'],
  ['100e-2', '1'],
  ['0.1e1', '1'],
  ['1e3', '1000'],
  ['1E+2', '100'],
  ['1e00000000000000000002', '100'],
  ['-1.5e1', '-15'],
  ['9007199254740993', '9007199254740993'],
  ['9223372036854775807', '9223372036854775807'],
  ['-9223372036854775808', '-9223372036854775808'],
  ['9.223372036854775807e18', '9223372036854775807'],
  ['-9223372036854775808000e-3', '-9223372036854775808'],
])('takes the id %s for %s, wherever an id is given', async (text, id) => {
  const { plants, file } = world()
  const answers = [
    await plants(['create', '--id', text, '--name', 'Fern']),
    await plants(['delete', text, '--yes']),
    await plants(['create'], `{"id":${text},"name":"Fern"}`),
    await plants(['get', text]),
    await plants(['delete', '--yes', '--', text]),
    await plants(['create', '--file', file(`{"id": ${text} ,"name":"Fern"}`)]),
    await plants(['list', '--after', text]),
    await plants(['list']),
  ]
  const plant = done(`{"id":${id},"name":"Fern"}\n`)
  const created = done('{"name":"Fern"}\n')
  expect(answers).toEqual([created, plant, created, plant, plant, created, done(''), plant])
})

test.each(['-yq', '-qy', '-yqo json', '-qyojson', '-qvy --no-color'])(
  'takes short options together: %s',
  async (short) => {
    const { plants } = world()
    await plants(['create', '--id', '1', '--name', 'Fern'])
    const { code, out } = await plants(['delete', '1', ...short.split(' ')])
    const json = '{"id":1,"name":"Fern"}\n'
    expect({ code, out }).toEqual({ code: 0, out: short.includes('json') ? `[\n${json}]\n` : json })
    expect(await plants(['list'])).toEqual(done(''))
  },
)

test.each([
  ['zeros before the point', `1${'0'.repeat(1_000_000)}e-1000000`],
  ['zeros behind the point', `0.${'0'.repeat(1_000_000)}1e1000001`],
  ['zeros in the exponent', `1e${'0'.repeat(1_000_000)}`],
])('takes an id of a million %s', async (_, text) => {
  const { plants } = world()
  expect(await plants(['create'], `{"id":${text},"name":"Fern"}`)).toEqual(done('{"name":"Fern"}\n'))
  expect(await plants(['list'])).toEqual(done('{"id":1,"name":"Fern"}\n'))
})

test.each([
  ['a byte order mark and CRLF', '\ufeff{\r\n\t"id": 1,\r\n\t"name": "Fern"\r\n}\r\n', '{"id":1,"name":"Fern"}'],
  ['an empty name and tag', '{"id":1,"name":"","tag":""}', '{"id":1,"name":"","tag":""}'],
  ['fields in any order', '{"tag":"shade","name":"Fern","id":1}', '{"id":1,"name":"Fern","tag":"shade"}'],
  [
    'the last of repeated keys',
    '{"id":"x","id":2,"name":5,"name":"Fern","tag":null,"tag":"a"}',
    '{"id":2,"name":"Fern","tag":"a"}',
  ],
  [
    'the last of repeated ids, exact',
    '{"id":1,"id":9007199254740993,"name":"Fern"}',
    '{"id":9007199254740993,"name":"Fern"}',
  ],
  [
    'the last of keys spelled differently',
    '{"id":1,"\\u0069d":2,"i\\u0064":3,"name":"Fern"}',
    '{"id":3,"name":"Fern"}',
  ],
  ['escapes for what they stand for', '{"id":1,"name":"\\u0046\\ud83c\\udf31\\/"}', '{"id":1,"name":"F\u{1f331}/"}'],
])('keeps %s', async (_, document, stored) => {
  const { plants, file } = world()
  await plants(['create'], document)
  await plants(['create', '--file', file(document), '--store', './other.db'])
  expect([await plants(['list']), await plants(['list', '--store', './other.db'])]).toEqual([
    done(`${stored}\n`),
    done(`${stored}\n`),
  ])
})

test('takes a body of exactly 1 MiB', async () => {
  const { plants, file } = world()
  const body = (id: number) => `{"id":${id},"name":"${'x'.repeat(1_048_576 - 18)}"}`
  const created = done(`{"name":"${'x'.repeat(1_048_576 - 18)}"}\n`)
  expect(Buffer.byteLength(body(1))).toBe(1_048_576)
  expect(await plants(['create'], body(1))).toEqual(created)
  expect(await plants(['create', '--file', file(body(2))])).toEqual(created)
})

test.each([0, 1, 2, 3])(
  'keeps a character that lies across two reads of a file, %i bytes before the border',
  async (before) => {
    const { plants, file } = world()
    const name = `${'x'.repeat(65_536 - 16 - before)}\u{1f331}`
    expect(await plants(['create', '--file', file(`{"id":1,"name":"${name}"}`)])).toEqual(done(`{"name":"${name}"}\n`))
  },
)

test.each([
  ['--name=--tag', '{"name":"--tag"}'],
  ['--name=a=b', '{"name":"a=b"}'],
  ['--name=-', '{"name":"-"}'],
  ['--name -', '{"name":"-"}'],
  ['--name -5', '{"name":"-5"}'],
  ['--tag create --name help', '{"name":"help","tag":"create"}'],
])('takes %s', async (flags, plant) => {
  const { plants } = world()
  expect(await plants(['create', '--id', '1', ...flags.split(' ')])).toEqual(done(`${plant}\n`))
})

test.each(['0', '1.5', '0.001ms', '500ms', '30s', '2m', '1h', '9999999', '999999999.999h'])(
  'takes the timeout %s',
  async (timeout) => {
    const { plants } = world()
    const answers = [
      await plants(['create', '--id', '1', '--name', 'Fern', '--timeout', timeout]),
      await plants(['list', '--timeout', timeout]),
    ]
    expect(answers).toEqual([done('{"name":"Fern"}\n'), done('{"id":1,"name":"Fern"}\n')])
  },
)

test('lets flags override the fields of a file and of stdin, right or wrong', async () => {
  const { plants, file } = world()
  const document = '{"id":1e400,"name":5,"tag":"shade"}'
  const answers = [
    await plants(['create', '--file', file(document), '--id', '1', '--name', 'Fern']),
    await plants(['create', '--file', '-', '--id=2', '--name=Moss', '--tag=x'], document),
    await plants(['create', '--file', '-', '--tag', 'wet'], '{"id":3,"name":"Reed","tag":null}'),
    await plants(['list']),
  ]
  expect(answers).toEqual([
    done('{"name":"Fern","tag":"shade"}\n'),
    done('{"name":"Moss","tag":"x"}\n'),
    done('{"name":"Reed","tag":"wet"}\n'),
    done(
      '{"id":1,"name":"Fern","tag":"shade"}\n{"id":2,"name":"Moss","tag":"x"}\n{"id":3,"name":"Reed","tag":"wet"}\n',
    ),
  ])
})

test.each([
  [['"nmae". Did you mean "name"?'], '"nmae":"Fern"'],
  [['"tags". Did you mean "tag"?', '"Name". Did you mean "name"?'], '"tags":["shade"],"Name":null'],
  [['""'], '"":0'],
  [['"__proto__"'], '"__proto__":{"tag":"shade"}'],
  [['"toString"', '"constructor"'], '"toString":1,"constructor":2'],
  [['"o"', '"p"', '"q"', '"r"', '"s"'], '"o":1,"p":2,"q":3,"r":4,"s":5,"u":6,"v":7'],
  [[`"${'k'.repeat(39)}…"`, `"${'l'.repeat(40)}"`], `"${'k'.repeat(41)}":1,"${'l'.repeat(40)}":2`],
  [[`"${'k'.repeat(38)}\u{1f331}…"`], `"${'k'.repeat(38)}${'\u{1f331}'.repeat(3)}":1`],
  [['"\\u001b[2J\\n"'], '"\\u001b[2J\\n":1'],
  [['"deep"'], `"deep":${'['.repeat(100_000)}${']'.repeat(100_000)}`],
])('warns of the fields %s', async (named, fields) => {
  const { plants } = world()
  const warnings = named.map((one) => `ignored unknown field ${one}`)
  const inText = warnings.map((warning) => `plants: warning: ${warning}\n`).join('')
  const document = (id: number) => `{"id":${id},"name":"Fern",${fields}}`
  const answers = [
    await plants(['create'], document(1)),
    await plants(['create', '--output', 'text'], document(2)),
    await plants(['create', '--output', 'json'], document(3)),
    await plants(['list']),
  ]
  expect(answers).toEqual([
    { code: 0, out: '{"name":"Fern"}\n', err: inText },
    { code: 0, out: 'Planted Fern (id 2)\n', err: inText },
    { code: 0, out: '{"name":"Fern"}\n', err: warnings.map((warning) => `${JSON.stringify({ warning })}\n`).join('') },
    done('{"id":1,"name":"Fern"}\n{"id":2,"name":"Fern"}\n{"id":3,"name":"Fern"}\n'),
  ])
})

const escapedInText: [name: string, text: string, json: string][] = [
  ['\u001b[31mred', '\\u{1b}[31mred', '\\u001b[31mred'],
  ['\u001b]0;title\u0007', '\\u{1b}]0;title\\u{7}', '\\u001b]0;title\\u0007'],
  ['\u009b2J\u0085', '\\u{9b}2J\\u{85}', '\\u009b2J\\u0085'],
  ['a\r\nb\tc\b\u007f', 'a\\u{d}\\u{a}b\\u{9}c\\u{8}\\u{7f}', 'a\\r\\nb\\tc\\b\\u007f'],
  ['\u202eevil\u2066\u2069', '\\u{202e}evil\\u{2066}\\u{2069}', '\\u202eevil\\u2066\\u2069'],
  ['\u200e\u200f\u061c', '\\u{200e}\\u{200f}\\u{61c}', '\\u200e\\u200f\\u061c'],
  ['a\u2028b\u2029c', 'a\\u{2028}b\\u{2029}c', 'a\\u2028b\\u2029c'],
]
const shownAsTheyAre: [name: string, text: string, json: string][] = [
  '\u{1f469}\u200d\u{1f469}\u200d\u{1f467}', // a family of one glyph
  'e\u0301', // a combining accent
  '\u0645\u0631\u062d\u0628\u0627', // right to left
  '\u{20bb7}\u91ce\u5bb6', // outside the basic plane
  '\uffff\u{10ffff}', // no characters, yet well-formed
].map((name) => [name, name, name])

test.each([...escapedInText, ...shownAsTheyAre])(
  'shows the name and tag %j without touching the terminal, and keeps them exact',
  async (name, text, json) => {
    const { plants } = world()
    const answers = [
      await plants(['create', '--output', 'text', '--id', '1', `--name=${name}`, `--tag=${name}`]),
      await plants(['get', '1', '--output', 'text']),
      await plants(['list', '--output', 'text']),
      await plants(['get', '1']),
      await plants(['list']),
      await plants(['delete', '1', '--yes', '--output', 'text']),
      await plants(['create'], JSON.stringify({ id: 1, name, tag: name })),
      await plants(['delete', '1', '--yes']),
    ]
    const plant = done(`{"id":1,"name":"${json}","tag":"${json}"}\n`)
    expect(answers).toEqual([
      done(`Planted ${text} (id 1, tag ${text})\n`),
      done(`id    1\nname  ${text}\ntag   ${text}\n`),
      done(expect.stringMatching(/^ID {2}NAME +TAG\n 1 {2}.+\n$/)),
      plant,
      plant,
      done(`Deleted ${text} (id 1, tag ${text})\n`),
      done(`{"name":"${json}","tag":"${json}"}\n`),
      plant,
    ])
    expect(JSON.parse(plant.out)).toEqual({ id: 1, name, tag: name })
    expect(answers.filter(({ out }) => /[^\P{Cc}\n]|[\p{Zl}\p{Zp}\p{Bidi_Control}]/u.test(out))).toEqual([])
  },
)

test('an empty option is an empty text, and is not stored silently: it may be an unset variable of a shell', async () => {
  const { plants, file: fileWith } = world()
  const file = fileWith('{"id":1,"name":"","tag":""}')
  const created = [
    await plants(['create', '--file', file]),
    await plants(['create', '--file', file, '--id', '2', '--tag', '']),
    await plants(['create', '--id', '3', '--name', '', '--tag', '']),
    await plants(['create', '--id', '4', '--name', 'Fern', '--tag', '', '--dry-run', '--output', 'json']),
  ]
  const [empty, warned] = ['{"name":"","tag":""}\n', 'plants: warning: --tag is empty: the plant gets the tag ""\n']
  expect(created).toEqual([
    done(empty),
    { code: 0, out: empty, err: warned },
    { code: 0, out: empty, err: `plants: warning: --name is empty: the plant gets the name ""\n${warned}` },
    { code: 0, out: expect.stringContaining('"tag":"","'), err: expect.stringContaining('"warning":"--tag is empty') },
  ])
  await plants(['create', '--id', '5', '--name', 'Fern', '--tag', 'wet'])
  expect(await plants(['update', '5', '--name', '', '--tag='])).toEqual({
    code: 0,
    out: '{"id":5,"name":"","tag":""}\n',
    err: [
      'plants: warning: --name is empty: the name changes from "Fern" to ""\n',
      'plants: warning: --tag is empty: the tag changes from "wet" to "". To remove it, use --no-tag\n',
    ].join(''),
  })
  expect(await plants(['update', '5', '--tag', ''])).toEqual(done('{"id":5,"name":"","tag":""}\n'))
})

test.each([
  [' ', 'Planted " " (id 1, tag " ")\n', 'id    1\nname  " "\ntag   " "\n'],
  [
    '\u00a0\u3000',
    'Planted "\u00a0\u3000" (id 1, tag "\u00a0\u3000")\n',
    'id    1\nname  "\u00a0\u3000"\ntag   "\u00a0\u3000"\n',
  ],
  ['\n', 'Planted "\\u{a}" (id 1, tag "\\u{a}")\n', 'id    1\nname  "\\u{a}"\ntag   "\\u{a}"\n'],
  [' Fern ', 'Planted " Fern " (id 1, tag " Fern ")\n', 'id    1\nname  " Fern "\ntag   " Fern "\n'],
  ['\\u{1b}', 'Planted \\u{1b} (id 1, tag \\u{1b})\n', 'id    1\nname  \\u{1b}\ntag   \\u{1b}\n'],
  ['"\\', 'Planted "\\ (id 1, tag "\\)\n', 'id    1\nname  "\\\ntag   "\\\n'],
])('says what a plant with the name and tag %j is called', async (name, sentence, card) => {
  const { plants } = world()
  const answers = [
    await plants(['create', '--output', 'text', '--id', '1', `--name=${name}`, `--tag=${name}`]),
    await plants(['get', '1', '--output', 'text']),
    await plants(['get', '1']),
  ]
  expect(answers).toEqual([done(sentence), done(card), done(`${JSON.stringify({ id: 1, name, tag: name })}\n`)])
})

function done(out: string): Result {
  return { code: 0, out, err: '' }
}

/** A store of its own, in a folder where files can be put. */
function world() {
  const folder = temporaryFolder()
  const plants = (argv: string[], stdin?: string) => {
    const base: RunOptions = { cwd: folder, env: { PLANTS_DATA_DIR: join(folder, 'data') } }
    return runPlants(argv, stdin === undefined ? base : { ...base, stdin })
  }
  const file = (content: string) => {
    writeFileSync(join(folder, 'plant.json'), content)
    return 'plant.json'
  }
  return { plants, file }
}
