// Package token counts and splits text into tokens without a model's
// tokenizer file, and supplies words that are one token each.
//
// Two packages need it that may not import each other: workload cuts prompts
// to a length, and sim counts the prompts it receives. Nothing here measures;
// the figures of a run take their token counts from the server's usage.
package token
