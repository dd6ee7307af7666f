import type { Command } from 'commander'
import { expect, test } from 'vitest'
import { program, treeOf } from '../../helpers/documents.js'
import { refusal, World } from '../../helpers/world.js'

// The messages about command lines are in transcripts/usage.txt.

test.each([
  ['out of range', ['9223372036854775808', '-9223372036854775809']],
  ['a number that is none', ['1.5', '1E3', '1e999999999', '007', '-00', '7.0', '+1', '1,000']],
  ['a text', ['', '1\n', '\u0661', 'a\u001b[2J']],
])('an id is no option if it is %s', async (_, texts) => {
  const user = new World()
  const rule = 'an integer from -9223372036854775808 to 9223372036854775807'
  for (const text of texts) {
    const message = `must be ${rule}, but was ${JSON.stringify(text)}`
    expect(await user.run(['create', `--id=${text}`, '--name', 'Fern'])).toEqual(
      refusal(`Invalid plant: id ${message}`, 'Correct the options'),
    )
    const err = expect.stringContaining(`plants: --after must be ${rule}\n`)
    expect(await user.run(['list', `--after=${text}`])).toMatchObject({ code: 2, err })
  }
  expect(user.has('data')).toBe(false)
})

test('an argument that is no id is answered with how ids and texts are given', async () => {
  const hint = 'Separate ids by spaces: 1 2 3. To find them: plants list --search TEXT'
  for (const id of ['abc', '1..3', '1,2', '1.5'])
    expect((await new World().run(`get ${id}`)).err).toContain(`\n  ${hint}\n`)
})

test.each([
  ['--timeout', 'a duration such as 500ms, 30s or 2m, up to 24d', '30s', '|-1|1.2345|25d|S3CRET'],
  ['--limit', 'a whole number from 1 to 9007199254740991', '10', '|0|1.5|01|9007199254740992'],
])('%s must be %s, and nothing is repeated but a word', async (flag, rule, example, texts) => {
  const hint = `For example: ${flag} ${example}`
  for (const text of texts.split('|'))
    expect(await new World().run(['list', flag, text])).toEqual(
      refusal(`${flag} must be ${rule}`, hint),
    )
  expect(await new World().run(['list', flag, 'some'])).toEqual(
    refusal(`${flag} must be ${rule}, but was "some"`, hint),
  )
})

test('an idempotency key is 1 to 255 visible ASCII characters', async () => {
  const user = new World()
  for (const key of ['', '\u007f', 'k'.repeat(256)])
    expect(
      await user.run(['create', '--id', '1', '--name', 'Fern', '--idempotency-key', key]),
    ).toEqual(
      refusal(
        '--idempotency-key must be 1 to 255 visible ASCII characters',
        'For example: --idempotency-key "$(uuidgen)"',
      ),
    )
  expect(user.has('data')).toBe(false)
})

const options = treeOf(program)
  .filter((command) => command.commands.length === 0 && command.name() !== 'help')
  .flatMap((command) =>
    command.options.flatMap(({ long, required }) =>
      long ? [{ words: wordsOf(command), long, required }] : [],
    ),
  )

test('each option with a value is rejected when it is given twice, unless it is repeatable, and no switch', async () => {
  const values = 'x 1 1d json skip info continue id name id=x utf-8 ; /x read *'.split(' ')
  const user = new World()
  const wrong: string[] = []
  for (const { words, long, required: hasValue } of options) {
    const required = hasValue && long !== '--cors'
    const message = `plants: ${required ? `${long} was given twice` : 'Unknown option --nope'}\n`
    let errors = ''
    for (const given of hasValue ? values.map((value) => [long, value]) : [[long]])
      if (!errors.includes(message))
        errors += (await user.run([...words, ...given, ...given, '--nope'])).err
    if (!errors.includes(message)) wrong.push([...words, long].join(' '))
  }
  expect(wrong).toEqual([])
})

function wordsOf(command: Command): string[] {
  return command.parent ? [...wordsOf(command.parent), command.name()] : []
}
