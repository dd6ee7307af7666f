import { expect, test } from 'vitest'
import { createStrictDecoder, UndecodableError } from '../../../src/formats/encoding.js'
import { check, fc } from '../../helpers/expect/arbitraries.js'

async function decode(bytes: Buffer, length: number): Promise<string> {
  const decoder = await createStrictDecoder('utf-8')
  let text = ''
  for (let at = 0; at < bytes.length; at += length)
    text += decoder.write(bytes.subarray(at, at + length))
  return text + decoder.end()
}

const awkward = fc.constantFrom('a', '\n', 'ü', '蕨', '🌿', '\ufeff', '\0')

test('the decoder of UTF-8 gives what TextDecoder gives, wherever blocks end', () =>
  check(
    300,
    [fc.string({ unit: awkward }), fc.integer({ min: 1, max: 9 })],
    async (text, length) => {
      const bytes = Buffer.from(text)
      expect(await decode(bytes, length)).toBe(new TextDecoder().decode(bytes))
    },
  ))

const someBytes = fc.array(
  fc.constantFrom(0x0a, 0x61, 0x80, 0xbf, 0xc0, 0xc3, 0xe8, 0x95, 0xed, 0xa0, 0xf0, 0x9f, 0xff),
)

test('the decoder of UTF-8 accepts what TextDecoder accepts, wherever blocks end', () =>
  check(500, [someBytes, fc.integer({ min: 1, max: 5 })], async (values, length) => {
    const bytes = Buffer.from(values)
    const isValid = !new TextDecoder().decode(bytes).includes('\ufffd')
    const decoded = decode(bytes, length)
    if (isValid) expect(await decoded).toBe(bytes.toString())
    else await expect(decoded).rejects.toThrow(UndecodableError)
  }))
