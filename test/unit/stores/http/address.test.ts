import { expect, test } from 'vitest'
import { formatWithScheme, parseHttp } from '../../../../src/stores/http/address.js'

test.each([
  ['http://localhost:4010/v1', 'https:', 'https://localhost:4010/v1'],
  ['http://[::1]:4010', 'https:', 'https://[::1]:4010'],
  ['http://plants.example.com', 'https:', 'https://plants.example.com:80'],
  ['http://plants.example.com:443', 'https:', 'https://plants.example.com'],
  ['https://plants.example.com', 'http:', 'http://plants.example.com:443'],
] as const)('%s with the scheme %s has the same port: %s', (address, scheme, expected) => {
  expect(formatWithScheme(parseHttp(address, 'test'), scheme)).toBe(expected)
})
