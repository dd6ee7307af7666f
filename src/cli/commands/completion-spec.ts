import type { CommandSpec } from '../spec.js'

export const completion: CommandSpec = {
  name: 'completion',
  summary: 'let a shell complete commands, flags and stores',
  description:
    'Print a script that lets a shell complete commands, flags and their values, saved stores and settings. It asks plants itself, so it need not be renewed.',
  arguments: [{ term: '[shell]', meaning: 'bash, zsh or fish', values: ['bash', 'zsh', 'fish'] }],
  notes: [
    {
      title: 'Installation',
      lines: [
        'bash, in ~/.bashrc:',
        '  source <(plants completion bash)',
        'zsh, once; then begin a new shell. Or source it in ~/.zshrc, behind compinit:',
        `  plants completion zsh > "\${fpath[1]}/_plants"`,
        'fish, once:',
        '  plants completion fish > ~/.config/fish/completions/plants.fish',
        'For another name of the program, such as p:',
        '  bash: complete -F _plants p   zsh: compdef _plants p   fish: complete -c p -w plants',
      ],
    },
  ],
  examples: ['source <(plants completion bash)', 'plants completion zsh > _plants', 'plants completion fish > plants.fish'],
  run: async ({ args: [shell = ''] }, io) => (await import('./completion.js')).completion(shell, io),
}
